package deploytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nudged/internal/config"
)

const systemdPath = root + "/deploy/systemd/"

// unit holds the values of a unit file by section and key, such as "Service.ExecStart".
func unit(t *testing.T) map[string][]string {
	t.Helper()
	values := map[string][]string{}
	section := ""
	for line := range strings.Lines(read(t, systemdPath+"nudged.service")) {
		line = strings.TrimSpace(line)
		switch key, value, _ := strings.Cut(line, "="); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			values[section+"."+key] = append(values[section+"."+key], value)
		}
	}
	return values
}

// single returns the value of a key that stands once.
func single(t *testing.T, unit map[string][]string, key string) string {
	t.Helper()
	if len(unit[key]) != 1 {
		t.Fatalf("%s stands %d times", key, len(unit[key]))
	}
	return unit[key][0]
}

// installed puts the program where a test may start it, and returns its path.
func installed(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nudged")
	if err := os.WriteFile(file, imageProgram(t), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestUnitIsClean(t *testing.T) {
	needProgram(t, "systemd-analyze")
	start, _, _ := strings.Cut(single(t, unit(t), "Service.ExecStart"), " ")
	file := filepath.Join(t.TempDir(), "nudged.service")
	write(t, file, strings.ReplaceAll(read(t, systemdPath+"nudged.service"), start, installed(t)))
	r := finish(t, exec.Command("systemd-analyze", "verify", file))
	if !r.state.Success() || r.stdout+r.stderr != "" {
		t.Errorf("systemd-analyze verify: %s\n%s%s", r.state, r.stdout, r.stderr)
	}
}

func TestUnitIsHardened(t *testing.T) {
	needProgram(t, "systemd-analyze")
	const exposure = "15" // in tenths: 1.5 of 10
	r := finish(t, exec.Command("systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold="+exposure, systemdPath+"nudged.service"))
	if !r.state.Success() {
		t.Errorf("systemd-analyze security: %s\n%s%s", r.state, r.stdout, r.stderr)
	}
	t.Log(regexp.MustCompile(`exposure level.*: [0-9.]+`).FindString(r.stdout))
}

// A stop must not cut off a delivery that is within its limits, nor the recording of its outcome.
func TestUnitOutlastsTheLongestDelivery(t *testing.T) {
	const recording = time.Minute // a pass that has begun, and a database that is away
	text := single(t, unit(t), "Service.TimeoutStopSec")
	limit, err := time.ParseDuration(strings.NewReplacer("min", "m", " ", "").Replace(text))
	if err != nil {
		t.Fatal(err)
	}
	smtp := config.Default().SMTP
	if longest := smtp.CommandTimeout + smtp.ReplyTimeout + recording; limit < longest {
		t.Errorf("TimeoutStopSec=%s, a delivery may take %s", text, longest)
	}
}

// Restarts cure a crash and a stall, and are not tried on a configuration that is wrong.
func TestUnitTellsAStallFromAMistake(t *testing.T) {
	values := unit(t)
	program := installed(t)
	command := func(url string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", `ulimit -c 0; exec "$0" run --web.listen-address=127.0.0.1:0 --database.url="$1"`, program, url)
		cmd.Env = foreign()
		for _, setting := range values["Service.Environment"] {
			if !strings.HasPrefix(setting, "NUDGED_CONFIG_FILE=") {
				cmd.Env = append(cmd.Env, setting)
			}
		}
		return cmd
	}
	wrong := finish(t, command("nonsense://"))
	if want := single(t, values, "Service.RestartPreventExitStatus"); strconv.Itoa(wrong.state.ExitCode()) != want {
		t.Errorf("a mistake ends with %s, the unit expects %s:\n%s", wrong.state, want, wrong.stderr)
	}

	file := filepath.Join(t.TempDir(), "nudged.yml")
	write(t, file, "smtp: {host: 127.0.0.1}\nmail: {from: a@example.com}\n")
	cmd := command("postgres://nobody@127.0.0.1:1/none")
	cmd.Env = append(cmd.Env, "NUDGED_CONFIG_FILE="+file)
	p := start(t, cmd)
	p.logs("nothing is sent yet")
	state := p.end(syscall.SIGABRT) // what the watchdog sends
	if status := state.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGABRT {
		t.Errorf("a stalled daemon ends with %s, want SIGABRT: the unit would take an exit status for a mistake", state)
	}
	if !strings.Contains(p.log.String(), "goroutine ") {
		t.Errorf("no stacks in the log:\n%s", p.log.String())
	}
}

// The shipped configuration is right, and asks for the credentials that the unit loads.
func TestConfigurationOfTheUnit(t *testing.T) {
	const credentials = "/run/credentials/nudged.service/"
	values := unit(t)
	text := read(t, systemdPath+"nudged.yml")
	dir := t.TempDir()
	var loaded, used []string
	for _, credential := range values["Service.LoadCredential"] {
		name, _, _ := strings.Cut(credential, ":")
		loaded = append(loaded, name)
		write(t, filepath.Join(dir, name), "postgres://nudged:secret@db.example.com/app\n")
	}
	for _, m := range regexp.MustCompile(regexp.QuoteMeta(credentials)+`(\S+)`).FindAllStringSubmatch(text, -1) {
		used = append(used, m[1])
	}
	slices.Sort(loaded)
	slices.Sort(used)
	if diff := cmp.Diff(loaded, used); diff != "" {
		t.Errorf("credentials (-loaded by the unit +used by nudged.yml)\n%s", diff)
	}
	if want := "NUDGED_CONFIG_FILE=/etc/nudged/nudged.yml"; !slices.Contains(values["Service.Environment"], want) {
		t.Errorf("the unit lacks Environment=%s", want)
	}
	file := filepath.Join(dir, "nudged.yml")
	write(t, file, strings.ReplaceAll(text, credentials, dir+"/"))
	cmd := exec.Command(installed(t), "check-config", "--config.file="+file)
	cmd.Env = foreign()
	succeed(t, cmd)
}

func TestEnvironmentFileOfTheUnit(t *testing.T) {
	help := succeed(t, exec.Command(installed(t), "run", "--help"))
	for line := range strings.Lines(read(t, systemdPath+"nudged.env")) {
		name, _, set := strings.Cut(line, "=")
		if set && line[0] != '#' && !strings.Contains(help, "$"+name) {
			t.Errorf("nudged run knows no %s:\n%s", name, help)
		}
	}
}
