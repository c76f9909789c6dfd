package main_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// browser is one page of a headless Chromium, driven over a pipe by the DevTools protocol.
type browser struct {
	t       *testing.T
	in      *os.File
	out     *bufio.Reader
	replies *os.File
	session string
	last    int             // number of the last call
	events  []browserReport // seen since the page was opened
}

// browserReport is an answer to a call, or an event.
type browserReport struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	binary, err := exec.LookPath("chromium")
	if err != nil {
		needsPackage(t, "chromium")
	}
	commands, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	replies, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{commands, out} // 3 and 4, by the protocol
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	commands.Close()
	out.Close()
	b := &browser{t: t, in: in, replies: replies, out: bufio.NewReader(replies)}
	t.Cleanup(func() {
		in.Close() // it ends with the pipe
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		select {
		case <-done:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-done
		}
		replies.Close()
	})
	var target struct {
		TargetID string `json:"targetId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Log", "Runtime", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call asks the browser for something and waits for the answer.
func (b *browser) call(method string, params any, result any) {
	b.t.Helper()
	b.last++
	request := map[string]any{"id": b.last, "method": method}
	if params != nil {
		request["params"] = params
	}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, err := json.Marshal(request)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	answer := b.until(func(r browserReport) bool { return r.ID == b.last })
	if answer.Error != nil {
		b.t.Fatalf("%s: %s", method, answer.Error.Message)
	}
	if result != nil {
		if err := json.Unmarshal(answer.Result, result); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
	}
}

// until reads what the browser reports until the right thing comes.
func (b *browser) until(right func(browserReport) bool) browserReport {
	b.t.Helper()
	if err := b.replies.SetReadDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		b.t.Fatal(err)
	}
	for {
		text, err := b.out.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("the browser does not answer: %v", err)
		}
		var report browserReport
		if err := json.Unmarshal(text[:len(text)-1], &report); err != nil {
			b.t.Fatal(err)
		}
		b.events = append(b.events, report)
		if right(report) {
			return report
		}
	}
}

// open loads an address in a window of a width and fails the test where the browser has something
// to complain about.
func (b *browser) open(address string, width int) {
	b.t.Helper()
	b.events = nil
	b.resize(width, 900)
	var navigated struct {
		ErrorText string `json:"errorText"`
	}
	b.call("Page.navigate", map[string]any{"url": address}, &navigated)
	if navigated.ErrorText != "" {
		b.t.Fatalf("%s: %s", address, navigated.ErrorText)
	}
	b.until(func(r browserReport) bool { return r.Method == "Page.loadEventFired" })
	b.drawn()
	for _, event := range b.events {
		switch event.Method {
		case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Page.javascriptDialogOpening":
			b.t.Errorf("%s at %d px: %s %s", address, width, event.Method, event.Params)
		case "Log.entryAdded":
			// Chromium notes each answer that is no success, as some pages here are meant to be.
			if !strings.Contains(string(event.Params), "Failed to load resource: the server responded with a status of") {
				b.t.Errorf("%s at %d px: %s", address, width, event.Params)
			}
		case "Network.requestWillBeSent":
			var sent struct{ Request struct{ URL string } }
			if err := json.Unmarshal(event.Params, &sent); err != nil {
				b.t.Fatal(err)
			}
			if loaded := sent.Request.URL; loaded != address && !strings.HasPrefix(loaded, "data:") && loaded != "about:srcdoc" {
				b.t.Errorf("%s loads %s", address, loaded)
			}
		}
	}
}

func (b *browser) resize(width, height int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// drawn waits until the page has been.
func (b *browser) drawn() {
	b.t.Helper()
	b.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))", nil)
}

// evaluate computes a JavaScript expression in the page.
func (b *browser) evaluate(expression string, into any) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, answer.ExceptionDetails)
	}
	if into != nil {
		if err := json.Unmarshal(answer.Result.Value, into); err != nil {
			b.t.Fatalf("%s: %v", expression, err)
		}
	}
}

// dark switches the colours that the reader prefers.
func (b *browser) dark(on bool) {
	b.t.Helper()
	scheme := "light"
	if on {
		scheme = "dark"
	}
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// press sends one key.
func (b *browser) press(key string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": 9}, nil)
	}
}

// shoot writes a picture of the page, as far down as height, where the flag asks for pictures.
func (b *browser) shoot(name string, height int) {
	b.t.Helper()
	if *pictures == "" {
		return
	}
	var size struct{ Width, Height int }
	b.evaluate("({Width: innerWidth, Height: document.documentElement.scrollHeight})", &size)
	b.resize(size.Width, min(size.Height, height)) // what lies outside of the window is not drawn
	b.drawn()
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*pictures, fmt.Sprintf("status-%s.png", name)), data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
