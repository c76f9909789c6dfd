package main

import (
	"context"
	"errors"
	htmltemplate "html/template"
	"io/fs"
	"strings"
	texttemplate "text/template"

	gomail "github.com/wneessen/go-mail"
)

// goMail sends with go-mail's own Send, on reused connections: the peer of the SMTP leg.
type goMail struct {
	texts *texttemplate.Template
	html  *htmltemplate.Template
}

// goMailConn is one connection, with a message that is sent over it again and again.
type goMailConn struct {
	client *gomail.Client
	ready  *gomail.Msg
}

func newGoMail(files fs.FS) (*goMail, error) {
	texts, errTexts := texttemplate.ParseFS(files, "*.txt")
	html, errHTML := htmltemplate.ParseFS(files, "body.html")
	if err := errors.Join(errTexts, errHTML); err != nil {
		return nil, err
	}
	return &goMail{texts: texts, html: html}, nil
}

func (g *goMail) compose(i int) (*gomail.Msg, error) {
	task := task(i)
	data := map[string]any{
		"RecipientName": task.Request.RecipientName, "SenderName": task.Request.SenderName,
		"Title": task.Request.Title, "URL": task.Link.URL, "Missing": task.Documents,
	}
	var subject strings.Builder
	message := gomail.NewMsg()
	err := errors.Join(
		message.From("reminders@example.com"), message.To(task.Request.RecipientEmail),
		g.texts.ExecuteTemplate(&subject, "subject.txt", data),
		message.SetBodyTextTemplate(g.texts.Lookup("body.txt"), data),
		message.AddAlternativeHTMLTemplate(g.html, data),
	)
	message.Subject(subject.String())
	return message, err
}

func (g *goMail) composeAndSend(c goMailConn, i int) error {
	message, err := g.compose(i)
	if err != nil {
		return err
	}
	return c.client.Send(message)
}

func (g *goMail) send(c goMailConn, _ int) error { return c.client.Send(c.ready) }

// run sends n messages over so many connections.
func (g *goMail) run(ctx context.Context, port, n, connections int, send func(goMailConn, int) error) (float64, error) {
	free := make(chan goMailConn, connections)
	for range connections {
		client, err := gomail.NewClient("127.0.0.1", gomail.WithPort(port), gomail.WithTLSPolicy(gomail.NoTLS),
			gomail.WithoutNoop(), gomail.WithHELO("bench"))
		if err != nil {
			return 0, err
		}
		if err := client.DialWithContext(ctx); err != nil {
			return 0, err
		}
		defer client.Close()
		ready, err := g.compose(0)
		if err != nil {
			return 0, err
		}
		free <- goMailConn{client, ready}
	}
	return perSecond(n, connections, func(i int) error {
		c := <-free
		defer func() { free <- c }()
		return send(c, i)
	})
}
