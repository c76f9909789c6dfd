package web

import (
	"errors"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
)

// maxListed bounds the mails that the inbox lists.
const maxListed = 100

// inboxPage lists the mails of a local inbox, the newest first.
type inboxPage struct {
	page

	Mails []listedMail
	More  int // older ones, not listed
}

// listedMail is one file of the inbox.
type listedMail struct {
	File    string
	Subject string
	To      string
}

// mailPage is one mail of a local inbox.
type mailPage struct {
	page
	message

	File string
}

// inbox lists the files by their names, which sort by arrival.
func (s *Server) inbox(w http.ResponseWriter, r *http.Request) {
	names, err := fs.Glob(s.cfg.Pages.Inbox, "*.eml")
	if err != nil {
		s.unreadable(w, r, err)
		return
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !isMail(name) })
	slices.Sort(names)
	slices.Reverse(names)
	view := inboxPage{page: s.page(root(r)), More: max(0, len(names)-maxListed)}
	for _, name := range names[:len(names)-view.More] {
		listed := listedMail{File: name}
		if m, err := s.open(name); err == nil {
			for _, f := range m.Header {
				switch f.Name {
				case "Subject":
					listed.Subject = f.Value
				case "To":
					listed.To = f.Value
				}
			}
		}
		view.Mails = append(view.Mails, listed)
	}
	s.write(w, http.StatusOK, "inbox", view)
}

func (s *Server) mail(w http.ResponseWriter, r *http.Request) {
	file := r.PathValue("file")
	if !isMail(file) {
		s.missing(w, r)
		return
	}
	m, err := s.open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.missing(w, r)
	case err != nil:
		s.unreadable(w, r, err)
	default:
		s.write(w, http.StatusOK, "mail", mailPage{page: s.page(root(r)), message: m, File: file})
	}
}

func (s *Server) open(file string) (message, error) {
	data, err := fs.ReadFile(s.cfg.Pages.Inbox, file)
	if err != nil {
		return message{}, err
	}
	return parseMessage(data)
}

// isMail keeps to files of the folder itself that are complete: a draft begins with a dot.
func isMail(name string) bool {
	return fs.ValidPath(name) && path.Ext(name) == ".eml" && !strings.ContainsAny(name, `/\`) && !strings.HasPrefix(name, ".")
}

func (s *Server) unreadable(w http.ResponseWriter, r *http.Request, err error) {
	s.cfg.Logger.Warn("the inbox cannot be shown", "err", err)
	s.write(w, http.StatusInternalServerError, "notice", noticePage{
		page: s.page(root(r)), Title: "The inbox cannot be read",
		Text: "The folder of the mails, or this mail, cannot be read.", Hint: "The log says why.",
	})
}
