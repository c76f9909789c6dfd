package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
)

// What a client may take: of time, so that a slow one does not keep its place, and of memory, so
// that any number of them leaves the process within the limit that the manifests give it.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = 10 * time.Second
	reloadTimeout  = time.Minute // in place of writeTimeout
	idleTimeout    = 2 * time.Minute
	drainTimeout   = 5 * time.Second
	maxHeader      = 16 << 10 // bytes
	maxConnections = 512      // of each address; more wait to be accepted
	maxRenderings  = 2        // of the metrics at once; more wait
)

// sayAgain is how long the log is silent about pages that are not shown, once one was told.
const sayAgain = time.Minute

// Config is what a Server is made of. All fields but WebConfigFile, Pages and Build are
// needed.
type Config struct {
	Registry        *prometheus.Registry
	ListenAddresses []string // host:port; port 0 takes a free one
	WebConfigFile   string   // of the exporter-toolkit: TLS and basic authentication; empty: neither
	Healthy         func() error
	Ready           func() error
	Reload          func(context.Context) error // may be called by several goroutines at once
	Pages           *Pages                      // nil: a front page without facts takes their place
	Logger          *slog.Logger
	Build           Build
}

// Server serves HTTP on every address that it is given.
type Server struct {
	cfg       Config
	views     views
	reading   chan struct{} // holds one token while the facts of a page are read
	rendering chan struct{} // holds a token for each rendering of the metrics
	ready     singleflight.Group
	started   chan struct{}
	addresses []string

	mu   sync.Mutex // guards what follows
	told time.Time  // when the log was last told that a page is not shown
}

// New checks the configuration, the web configuration file included. It opens nothing yet.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Registry == nil || cfg.Logger == nil:
		return nil, errors.New("web: registry and logger are needed")
	case cfg.Healthy == nil || cfg.Ready == nil || cfg.Reload == nil:
		return nil, errors.New("web: healthy, ready and reload are needed")
	case len(cfg.ListenAddresses) == 0:
		return nil, errors.New("web: no listen address")
	}
	if err := toolkit.Validate(cfg.WebConfigFile); err != nil {
		return nil, fmt.Errorf("web configuration file %s: %w", cfg.WebConfigFile, err)
	}
	if err := cfg.Pages.validate(); err != nil {
		return nil, err
	}
	views, err := parseViews()
	if err != nil {
		return nil, err
	}
	return &Server{
		cfg: cfg, views: views, started: make(chan struct{}),
		reading: make(chan struct{}, 1), rendering: make(chan struct{}, maxRenderings),
	}, nil
}

// Started is closed when every address is listened on.
func (s *Server) Started() <-chan struct{} { return s.started }

// Addresses returns the addresses listened on, in the order of Config.ListenAddresses and with
// real ports. Before Started is closed there is none.
func (s *Server) Addresses() []string {
	select {
	case <-s.started:
		return s.addresses
	default:
		return nil
	}
}

// Run listens on every address and serves until ctx ends or one listener fails. Then it lets open
// requests end, for five seconds at most. It returns nil where ctx ended. Run is called once.
func (s *Server) Run(ctx context.Context) error {
	listeners, err := s.listen(ctx)
	if err != nil {
		return err
	}
	handler := s.Handler()
	group, ctx := errgroup.WithContext(ctx)
	for _, listener := range listeners {
		// A server for each listener: the toolkit changes the server that it is given, so sharing
		// one would be a data race, and every request would be authenticated once a listener.
		server := s.server(handler)
		group.Go(func() error { return s.serve(server, listener) })
		group.Go(func() error {
			<-ctx.Done()
			return drain(server)
		})
	}
	for _, listener := range listeners {
		s.addresses = append(s.addresses, listener.Addr().String())
	}
	close(s.started)
	return group.Wait()
}

func (s *Server) listen(ctx context.Context) (listeners []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, listener := range listeners {
				listener.Close()
			}
		}
	}()
	for _, address := range s.cfg.ListenAddresses {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return listeners, fmt.Errorf("listen for the web: %w", err)
		}
		if tcp, ok := listener.(*net.TCPListener); ok { // it always is
			listener = newLimited(tcp, maxConnections)
		}
		listeners = append(listeners, listener)
	}
	return listeners, nil
}

func (s *Server) server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(complaints{s.cfg.Logger.Handler()}, slog.LevelWarn),
	}
}

// complaints are what net/http has to say. That a client ended its TLS handshake is no fault of ours
// and worth no warning: balancers that only look whether the port is open do it all day.
type complaints struct{ slog.Handler }

// Handle implements slog.Handler.
func (c complaints) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "http: TLS handshake error") {
		r.Level = slog.LevelDebug
	}
	if !c.Enabled(ctx, r.Level) {
		return nil
	}
	return c.Handler.Handle(ctx, r)
}

// serve serves one listener until its server is shut down.
func (s *Server) serve(server *http.Server, listener net.Listener) error {
	defer listener.Close() // where the toolkit gives up before it serves
	err := toolkit.Serve(listener, server, &toolkit.FlagConfig{WebConfigFile: &s.cfg.WebConfigFile}, s.cfg.Logger)
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the web on %s: %w", listener.Addr(), err)
	}
	return nil
}

// drain lets open requests end and cuts off those that do not.
func drain(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return server.Close()
	}
	return nil
}
