package main

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"

	"nudged/internal/config"
	"nudged/scheduler"
)

type renderCommand struct {
	RequestID string `arg:"" name:"request-id" help:"The request."`
	Slot      filled `name:"slot" placeholder:"SLOT" help:"The slot, such as 3d; without it the one that goes out next."`
	Format    string `name:"format" enum:"eml,html,text" default:"eml" help:"eml, html or text."`
}

// Run implements the subcommand. It composes as the daemon does and delivers nothing.
func (c *renderCommand) Run(g *globals) error {
	cfg, err := g.load(config.NeedDatabase, config.NeedMail)
	if err != nil {
		return err
	}
	task, err := c.task(g, cfg)
	if err != nil {
		return err
	}
	m, err := newMailer(cfg, nil, g.logger())
	if err != nil {
		return err
	}
	defer m.Close()
	msg, err := m.Compose(task)
	if err != nil {
		return fmt.Errorf("the mail of slot %s cannot be written: %w", task.Slot.Name, err)
	}
	content := msg.Data
	if c.Format != "eml" {
		if content, err = partOf(msg.Data, map[string]string{"html": "text/html", "text": "text/plain"}[c.Format]); err != nil {
			return err
		}
	}
	_, err = g.stdout.Write(content)
	return err
}

// task is the one that the daemon would make of the slot as things stand.
func (c *renderCommand) task(g *globals, cfg *config.Config) (scheduler.Task, error) {
	store, err := openStore(g.ctx, cfg)
	if err != nil {
		return scheduler.Task{}, err
	}
	defer store.Close()
	in, documents, err := store.Load(g.ctx, c.RequestID)
	if err != nil {
		return scheduler.Task{}, err
	}
	claim, err := policyOf(cfg).Preview(in, string(c.Slot))
	if err != nil {
		return scheduler.Task{}, err
	}
	task := claim.Task(in)
	task.Documents = documents
	return task, nil
}

// partOf returns the decoded part of a mail that has the media type.
func partOf(data []byte, want string) ([]byte, error) {
	msg, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read the mail back: %w", err)
	}
	_, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("read the mail back: %w", err)
	}
	parts := multipart.NewReader(msg.Body, params["boundary"])
	for {
		part, err := parts.NextPart() // decodes quoted-printable
		if err != nil {
			return nil, fmt.Errorf("read the mail back: no part %s: %w", want, err)
		}
		if !strings.HasPrefix(part.Header.Get("Content-Type"), want) {
			continue
		}
		text, err := io.ReadAll(part)
		if err != nil {
			return nil, fmt.Errorf("read the mail back: %w", err)
		}
		return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), nil
	}
}
