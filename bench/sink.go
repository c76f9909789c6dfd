package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// sinkArgument makes this program be the sink: a process of its own, so that its CPU is not ours.
const sinkArgument = "sink"

// sink is a mail server that takes everything and keeps nothing.
type sink struct {
	cmd  *exec.Cmd
	port int
}

func startSink() (*sink, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &sink{cmd: exec.Command(self, sinkArgument)}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fscan(out, &s.port); err != nil {
		return nil, fmt.Errorf("start the sink: %w", err)
	}
	return s, nil
}

func (s *sink) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// runSink serves until it is killed.
func runSink() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go serve(conn)
	}
}

func serve(conn net.Conn) {
	defer conn.Close()
	in, out := bufio.NewReaderSize(conn, 64<<10), bufio.NewWriter(conn)
	say := func(line string) bool {
		_, _ = out.WriteString(line + "\r\n")
		if in.Buffered() > 0 { // answers to a pipelined group leave together
			return true
		}
		return out.Flush() == nil
	}
	if !say("220 sink ESMTP") {
		return
	}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		switch verb := strings.ToUpper(string(line[:min(4, len(line))])); verb {
		case "EHLO":
			say("250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SIZE 50000000\r\n250 ENHANCEDSTATUSCODES")
		case "DATA":
			say("354 go ahead")
			for {
				line, err := in.ReadSlice('\n')
				if err != nil {
					return
				}
				if bytes.Equal(line, []byte(".\r\n")) {
					break
				}
			}
			say("250 2.0.0 Ok: queued")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 2.0.0 Ok")
		}
	}
}

// proxy delays everything between a client and the sink by half a round trip each way.
type proxy struct {
	listener net.Listener
	target   string
	delay    time.Duration
}

func startProxy(port int, roundTrip time.Duration) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, target: fmt.Sprintf("127.0.0.1:%d", port), delay: roundTrip / 2}
	go p.accept()
	return p, nil
}

func (p *proxy) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			return
		}
		var ways sync.WaitGroup
		ways.Go(func() { p.carry(client, server) })
		ways.Go(func() { p.carry(server, client) })
		go func() {
			ways.Wait()
			client.Close()
			server.Close()
		}()
	}
}

type chunk struct {
	at   time.Time
	data []byte
}

func (p *proxy) carry(from, to net.Conn) {
	chunks := make(chan chunk, 1024)
	go func() {
		defer close(chunks)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				chunks <- chunk{time.Now().Add(p.delay), buffer[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for c := range chunks {
		time.Sleep(time.Until(c.at))
		if _, err := to.Write(c.data); err != nil {
			from.Close()
		}
	}
	to.Close()
}
