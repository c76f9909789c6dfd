package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"nudged/internal/config"
	"nudged/mailer"
)

type checkConfigCommand struct{}

// Run implements the subcommand.
func (c *checkConfigCommand) Run(g *globals) error {
	if g.flags.ConfigFile == "" {
		return usagef("check-config needs --config.file")
	}
	cfg, err := g.load(config.NeedMail)
	if err != nil {
		return err
	}
	if err := checkTemplates(cfg); err != nil {
		return err
	}
	_, err = fmt.Fprintf(g.stdout, "%s: ok (%d cadences, hash %s)\n", cfg.File, len(cfg.Cadences), cfg.Hash)
	return err
}

// checkTemplates renders samples with every template. The error is config.Mistakes, or that of a
// mailer that cannot be set up at all.
func checkTemplates(cfg *config.Config) error {
	m, err := newMailer(cfg, nil, nil)
	if err != nil {
		return usageError{err}
	}
	defer m.Close()
	err = m.CheckTemplates()
	problems, ok := errors.AsType[mailer.TemplateProblems](err)
	if !ok {
		return err
	}
	mistakes := make(config.Mistakes, 0, len(problems))
	for _, p := range problems {
		file := p.File
		if !strings.HasPrefix(file, "built-in ") {
			file = filepath.Join(cfg.Mail.Templates, file)
		}
		mistakes = append(mistakes, config.Mistake{File: file, Line: p.Line, Key: "mail.templates", Reason: p.Reason})
	}
	return mistakes
}
