package scheduler

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestNewRefuses(t *testing.T) {
	store := newMemory(t, time.Now, time.Now())
	valid := func() Config {
		return Config{
			Store: store, Mailer: &postbox{}, Policy: newPolicy(t), Every: time.Second, StallAfter: time.Minute,
			Batch: 1, Lease: time.Minute, Workers: 1, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
		}
	}
	if _, err := New(valid()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no store":      func(c *Config) { c.Store = nil },
		"no mailer":     func(c *Config) { c.Mailer = nil },
		"no policy":     func(c *Config) { c.Policy = nil },
		"no registerer": func(c *Config) { c.Registerer = nil },
		"no logger":     func(c *Config) { c.Logger = nil },
		"no batch":      func(c *Config) { c.Batch = 0 },
		"no workers":    func(c *Config) { c.Workers = 0 },
		"no lease":      func(c *Config) { c.Lease = 0 },
		"no stall time": func(c *Config) { c.StallAfter = 0 },
		"negative rate": func(c *Config) { c.Rate = -1 },
		"registered twice": func(c *Config) {
			if _, err := newMetrics(c.Registerer); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := valid()
			change(&cfg)
			if _, err := New(cfg); err == nil {
				t.Error("no error")
			}
		})
	}
}
