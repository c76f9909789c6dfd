package web

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"golang.org/x/crypto/bcrypt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program stands for the rest of the program: what it answers can be changed while it serves.
type program struct {
	mu                     sync.Mutex
	healthy, ready, reload error
	reloads                int
}

func (p *program) set(healthy, ready, reload error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.healthy, p.ready, p.reload = healthy, ready, reload
}

func (p *program) config() Config {
	locked := func(err *error) func() error {
		return func() error {
			p.mu.Lock()
			defer p.mu.Unlock()
			return *err
		}
	}
	return Config{
		Registry:        prometheus.NewRegistry(),
		ListenAddresses: []string{"127.0.0.1:0"},
		Healthy:         locked(&p.healthy),
		Ready:           locked(&p.ready),
		Reload: func(context.Context) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.reloads++
			return p.reload
		},
		Logger: slog.New(slog.DiscardHandler),
		Build:  Build{Version: "1.2.3", Revision: "<abc>"},
	}
}

// start serves until the test ends and returns the addresses.
func start(t *testing.T, cfg Config) []string {
	t.Helper()
	server, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := server.Addresses(); got != nil {
		t.Errorf("addresses %v before the start", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	select {
	case <-server.Started():
	case err := <-done:
		done <- err
		t.Fatalf("did not start: %v", err)
	}
	return server.Addresses()
}

type reply struct {
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, client *http.Client, method, url string, change func(*http.Request)) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(req)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(body)}
}

// client keeps no connection, so that none is left when the test ends.
func client(config *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}
}

func TestPaths(t *testing.T) {
	var p program
	base := "http://" + start(t, p.config())[0]
	for _, c := range []struct {
		method, path   string
		healthy, ready error
		reload         error
		status         int
		body           string
	}{
		{"GET", "/-/healthy", nil, errors.New("no"), nil, 200, "ok\n"},
		{"HEAD", "/-/healthy", nil, nil, nil, 200, ""},
		{"GET", "/-/healthy", errors.New("no pass since\n10m"), nil, nil, 503, "no pass since 10m\n"},
		{"HEAD", "/-/healthy", errors.New("no"), nil, nil, 503, ""},
		{"POST", "/-/healthy", nil, nil, nil, 405, "Method Not Allowed\n"},
		{"GET", "/-/ready", errors.New("no"), nil, nil, 200, "ok\n"},
		{"HEAD", "/-/ready", nil, nil, nil, 200, ""},
		{"GET", "/-/ready", nil, errors.New("schema is older than this program"), nil, 503, "schema is older than this program\n"},
		{"POST", "/-/reload", nil, nil, nil, 200, "ok\n"},
		{"POST", "/-/reload", nil, nil, errors.New("a:1: b: c\na:2: d: e"), 500, "a:1: b: c\na:2: d: e\n"},
		{"GET", "/-/reload", nil, nil, nil, 405, "Method Not Allowed\n"},
		{"PUT", "/-/reload", nil, nil, nil, 405, "Method Not Allowed\n"},
		{"POST", "/metrics", nil, nil, nil, 405, "Method Not Allowed\n"},
		{"POST", "/", nil, nil, nil, 405, "Method Not Allowed\n"},
		{"GET", "/nothing", nil, nil, nil, 404, "404 page not found\n"},
		{"GET", "/-/", nil, nil, nil, 404, "404 page not found\n"},
		{"GET", "/debug/pprof/", nil, nil, nil, 404, "404 page not found\n"},
	} {
		p.set(c.healthy, c.ready, c.reload)
		got := ask(t, client(nil), c.method, base+c.path, nil)
		if got.status != c.status || got.body != c.body {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.path, got.status, got.body, c.status, c.body)
		}
		if got.status == 405 && got.header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.path)
		}
	}
	if p.reloads != 2 {
		t.Errorf("%d reloads, want the 2 that were posted", p.reloads)
	}
}

func TestFrontPage(t *testing.T) {
	base := "http://" + start(t, new(program).config())[0]
	page := ask(t, client(nil), "GET", base+"/", nil)
	if page.status != 200 || !strings.Contains(page.body, "1.2.3 (&lt;abc&gt;)") {
		t.Errorf("front page %d:\n%s", page.status, page.body)
	}
	links := regexp.MustCompile(`href="(.*?)"`).FindAllStringSubmatch(page.body, -1)
	if len(links) != 3 {
		t.Errorf("%d links, want 3", len(links))
	}
	for _, link := range links {
		if got := ask(t, client(nil), "GET", base+"/"+link[1], nil); got.status != 200 {
			t.Errorf("link %s leads to %d", link[1], got.status)
		}
	}
}

func TestReloadFromAnotherSite(t *testing.T) {
	var p program
	base := "http://" + start(t, p.config())[0]
	got := ask(t, client(nil), "POST", base+"/-/reload", func(r *http.Request) { r.Header.Set("Origin", "https://evil.test") })
	if got.status != 403 || p.reloads != 0 {
		t.Errorf("status %d, %d reloads, want 403 and none", got.status, p.reloads)
	}
}

func TestLargeHeader(t *testing.T) {
	base := "http://" + start(t, new(program).config())[0]
	got := ask(t, client(nil), "GET", base+"/-/healthy", func(r *http.Request) { r.Header.Set("X-Large", strings.Repeat("x", 2*maxHeader)) })
	if got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d", got.status)
	}
}

// TestBasicAuth runs two listeners, each of which guards every path.
func TestBasicAuth(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("hunter2"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	var p program
	cfg := p.config()
	cfg.ListenAddresses = []string{"127.0.0.1:0", "127.0.0.1:0"}
	cfg.WebConfigFile = write(t, fmt.Sprintf("basic_auth_users:\n  prometheus: %s\n", hash))
	addresses := start(t, cfg)
	if len(addresses) != 2 || addresses[0] == addresses[1] {
		t.Fatalf("addresses %v, want two", addresses)
	}
	for _, address := range addresses {
		for _, path := range []string{"/", "/metrics", "/-/healthy", "/-/ready", "/-/reload", "/nothing"} {
			if got := ask(t, client(nil), "GET", "http://"+address+path, nil); got.status != 401 {
				t.Errorf("%s without a password: %d", path, got.status)
			}
		}
		for password, want := range map[string]int{"hunter2": 200, "hunter3": 401} {
			got := ask(t, client(nil), "POST", "http://"+address+"/-/reload", func(r *http.Request) { r.SetBasicAuth("prometheus", password) })
			if got.status != want {
				t.Errorf("password %s: %d, want %d", password, got.status, want)
			}
		}
	}
	if p.reloads != 2 {
		t.Errorf("%d reloads, want one by each address", p.reloads)
	}
}

func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	certFile, keyFile := write(t, string(certPEM)), write(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	cfg := new(program).config()
	cfg.ListenAddresses = []string{"127.0.0.1:0", "127.0.0.1:0"}
	cfg.WebConfigFile = write(t, fmt.Sprintf("tls_server_config:\n  cert_file: %s\n  key_file: %s\n", certFile, keyFile))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	for _, address := range start(t, cfg) {
		if got := ask(t, client(&tls.Config{RootCAs: roots}), "GET", "https://"+address+"/-/healthy", nil); got.status != 200 {
			t.Errorf("status %d", got.status)
		}
		if got := ask(t, client(nil), "GET", "http://"+address+"/-/healthy", nil); got.status != 400 {
			t.Errorf("in the clear: status %d, want 400", got.status)
		}
	}
}

func TestWebConfigFileIsChecked(t *testing.T) {
	for _, file := range []string{
		filepath.Join(t.TempDir(), "none.yml"), write(t, "nothing: 1\n"), write(t, "basic_auth_users:\n  a: not-a-hash\n"),
	} {
		cfg := new(program).config()
		cfg.WebConfigFile = file
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("error %v, want one that names the file", err)
		}
	}
}

func TestNewWantsEverything(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"registry": func(c *Config) { c.Registry = nil },
		"logger":   func(c *Config) { c.Logger = nil },
		"healthy":  func(c *Config) { c.Healthy = nil },
		"ready":    func(c *Config) { c.Ready = nil },
		"reload":   func(c *Config) { c.Reload = nil },
		"address":  func(c *Config) { c.ListenAddresses = nil },
	} {
		cfg := new(program).config()
		change(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("no error without %s", name)
		}
	}
}

// TestAddressInUse takes one address away and wants the other one closed again.
func TestAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	cfg := new(program).config()
	cfg.ListenAddresses = []string{free.Addr().String(), taken.Addr().String()}
	server, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Run(t.Context()); err == nil || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("error %v, want one that names the address", err)
	}
	again, err := net.Listen("tcp", free.Addr().String())
	if err != nil {
		t.Fatalf("the other address is still open: %v", err)
	}
	again.Close()
}

// TestOneListenerFails breaks the web configuration file between New and Run.
func TestOneListenerFails(t *testing.T) {
	cfg := new(program).config()
	cfg.ListenAddresses = []string{"127.0.0.1:0", "127.0.0.1:0"}
	cfg.WebConfigFile = write(t, "{}\n")
	server, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.WebConfigFile, []byte("nothing: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := server.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "serve the web on 127.0.0.1:") {
		t.Errorf("error %v", err)
	}
}

// TestShutdownWaits ends the context while a reload is on its way: the answer still comes.
func TestShutdownWaits(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	cfg := new(program).config()
	cfg.Reload = func(context.Context) error {
		close(entered)
		<-release
		return nil
	}
	server, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	<-server.Started()
	status := make(chan int, 1)
	go func() {
		resp, err := client(nil).Post("http://"+server.Addresses()[0]+"/-/reload", "", nil)
		if err != nil {
			status <- 0
			return
		}
		resp.Body.Close()
		status <- resp.StatusCode
	}()
	<-entered
	cancel()
	for refused := false; !refused; { // the listener closes first
		conn, err := net.Dial("tcp", server.Addresses()[0])
		if refused = err != nil; !refused {
			conn.Close()
		}
	}
	select {
	case err := <-done:
		t.Fatalf("ended before the request did: %v", err)
	default:
	}
	close(release)
	if got := <-status; got != 200 {
		t.Errorf("status %d, want 200", got)
	}
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestRunWithAnEndedContext(t *testing.T) {
	server, err := New(new(program).config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Run(ctx); err != nil {
		t.Errorf("run: %v", err)
	}
}

// write puts a text into a file of its own and returns the path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
