package web

import (
	"bytes"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxBody bounds the body of a request, in bytes. No path reads one.
const maxBody = 4 << 10

// Handler returns the whole HTTP surface, without TLS and authentication: Run adds those.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics())
	mux.HandleFunc("GET /-/healthy", check(s.cfg.Healthy))
	mux.HandleFunc("GET /-/ready", check(s.readyOnce))
	mux.HandleFunc("POST /-/reload", s.reload)
	if s.cfg.Pages == nil {
		mux.HandleFunc("GET /{$}", s.front)
	} else {
		s.routes(mux)
	}
	return http.MaxBytesHandler(http.NewCrossOriginProtection().Handler(mux), maxBody)
}

// metrics renders into memory, a few at a time, and writes what is finished: a client that reads
// slowly costs the bytes of its answer and not all that they were made from.
func (s *Server) metrics() http.Handler {
	render := promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{
		ErrorLog:           slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelError),
		Registry:           s.cfg.Registry,
		DisableCompression: true, // a compressor takes more memory than all the rest of a request
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.rendering <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		finished := rendered{header: w.Header(), status: http.StatusOK}
		render.ServeHTTP(&finished, r)
		<-s.rendering
		w.WriteHeader(finished.status)
		finished.body.WriteTo(w) //nolint:errcheck // the client went away: nobody is left to tell
	})
}

// rendered is an answer in memory.
type rendered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *rendered) Header() http.Header         { return r.header }
func (r *rendered) WriteHeader(status int)      { r.status = status }
func (r *rendered) Write(b []byte) (int, error) { return r.body.Write(b) }

// readyOnce lets those who ask at the same time share one answer: each asks the database.
func (s *Server) readyOnce() error {
	_, err, _ := s.ready.Do("", func() (any, error) { return nil, s.cfg.Ready() })
	return err
}

// check answers 200, or 503 with the reason on one line.
func check(ask func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := ask(); err != nil {
			answer(w, http.StatusServiceUnavailable, strings.Join(strings.Fields(err.Error()), " "))
			return
		}
		answer(w, http.StatusOK, "ok")
	}
}

// reload answers when the new configuration is in force. The reason of a refusal has a line for
// each mistake.
func (s *Server) reload(w http.ResponseWriter, r *http.Request) {
	// Where there is no connection to set it on, there is none that could end too early.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(reloadTimeout))
	if err := s.cfg.Reload(r.Context()); err != nil {
		answer(w, http.StatusInternalServerError, err.Error())
		return
	}
	answer(w, http.StatusOK, "ok")
}

func answer(w http.ResponseWriter, status int, text string) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	io.WriteString(w, text+"\n") //nolint:errcheck // the client went away: nobody is left to tell
}

//nolint:gochecknoglobals // parsed once and only read
var frontPage = template.Must(template.New("front").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>nudged</title>
<h1>nudged</h1>
<p>{{.Version}}{{with .Revision}} ({{.}}){{end}}</p>
<ul>
<li><a href="metrics">metrics</a></li>
<li><a href="-/healthy">healthy</a></li>
<li><a href="-/ready">ready</a></li>
</ul>
</html>
`))

func (s *Server) front(w http.ResponseWriter, _ *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "default-src 'none'")
	if err := frontPage.Execute(w, s.cfg.Build); err != nil {
		s.cfg.Logger.Debug("front page not written", "err", err)
	}
}
