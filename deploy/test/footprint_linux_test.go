package deploytest

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var footprintDue = flag.Int("footprint", 2000, "reminders that TestFootprint sends")

// TestFootprint measures what a daemon takes, idle and sending as fast as it can, and holds it
// against what the Deployment asks for.
func TestFootprint(t *testing.T) {
	s := newSite(t, "")
	s.configure("")
	d := s.start().ready()
	idle := d.usage()
	s.due("r", *footprintDue, time.Minute)
	begun, before := time.Now(), d.usage()
	const slowest = 100 // mails a second, on a machine that has much else to do
	waitFor(t, patience+time.Duration(*footprintDue/slowest)*time.Second, "the mails", func() bool { return s.reminders("sent") == *footprintDue })
	took, after := time.Since(begun), d.usage()
	cpu := (after.cpu - before.cpu) / time.Duration(*footprintDue)
	var ledger int64
	if err := s.db.QueryRow(t.Context(), `SELECT pg_total_relation_size('nudged.reminders')`).Scan(&ledger); err != nil {
		t.Fatal(err)
	}
	t.Logf("idle: %s resident; sending %d in %s: %s at the peak, %s of CPU a mail; ledger: %d bytes a reminder",
		mib(idle.resident), *footprintDue, took.Round(time.Millisecond), mib(after.peak), cpu.Round(time.Microsecond),
		ledger/int64(*footprintDue))

	container := deployment(t, objects(t, "base")).Spec.Template.Spec.Containers[0]
	if asked := container.Resources.Requests[corev1.ResourceMemory]; after.peak > asked.Value() {
		t.Errorf("%s resident at the peak, the Deployment asks for %s", mib(after.peak), asked.String())
	}
	d.end(syscall.SIGTERM)
}

// usage is what a process has taken so far. Memory is in bytes.
type usage struct {
	resident, peak int64
	cpu            time.Duration
}

func (d *daemon) usage() usage {
	d.t.Helper()
	return usage{resident: d.status("VmRSS"), peak: d.status("VmHWM"), cpu: d.cpu()}
}

// status reads a size from /proc/PID/status.
func (d *daemon) status(key string) int64 {
	d.t.Helper()
	for line := range strings.Lines(d.proc("status")) {
		if name, value, _ := strings.Cut(line, ":"); name == key {
			kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				d.t.Fatal(err)
			}
			return kib << 10
		}
	}
	d.t.Fatalf("/proc has no %s", key)
	return 0
}

// cpu reads user and system time from /proc/PID/stat, which counts hundredths of a second.
func (d *daemon) cpu() time.Duration {
	d.t.Helper()
	_, text, _ := strings.Cut(d.proc("stat"), ") ")
	var ticks int64
	const userTime = 11 // place behind the name of the command
	for _, field := range strings.Fields(text)[userTime : userTime+2] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			d.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func (d *daemon) proc(file string) string {
	d.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", d.cmd.Process.Pid, file))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
