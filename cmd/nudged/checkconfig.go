package main

import (
	"errors"
	"fmt"
	"net/mail"
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
	cfg, mistakes := config.Inspect(g.flags.ConfigFile, g.overrides(config.NeedMail), config.NeedMail)
	if cfg != nil {
		mistakes = append(mistakes, checkTemplates(cfg)...)
	}
	if len(mistakes) > 0 {
		return mistakes
	}
	_, err := fmt.Fprintf(g.stdout, "%s: ok (%d cadences, hash %s)\n", cfg.File, len(cfg.Cadences), cfg.Hash)
	return err
}

// checkTemplates renders samples with every template. It needs no more of a configuration than the
// templates do, so that it finds their mistakes beside all others.
func checkTemplates(cfg *config.Config) config.Mistakes {
	whole := *cfg
	whole.Defaults.Locale = "en" // built in: a default locale without templates is told of already
	whole.SMTP = config.SMTP{Host: "localhost"}
	whole.Mail = config.Mail{From: mail.Address{Address: "sample@example.com"}, Thread: cfg.Mail.Thread, Templates: cfg.Mail.Templates}
	m, err := newMailer(&whole, nil, nil)
	if err != nil {
		return config.Mistakes{{File: cfg.File, Key: "mail.templates", Reason: err.Error()}}
	}
	defer m.Close()
	problems, _ := errors.AsType[mailer.TemplateProblems](m.CheckTemplates())
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
