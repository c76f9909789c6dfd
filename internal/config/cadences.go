package config

import (
	"errors"

	"github.com/goccy/go-yaml/ast"

	"nudged/cadence"
)

// cadences decodes the cadences by name. Where there is none the built-in one holds.
func (r *reader) cadences(s *section, c *Config) {
	if len(s.names) == 0 && !r.wrong(s.path) {
		every, ceiling := "7d", 12
		builtin := cadence.Definition{After: []string{"3d", "7d", "14d"}, ThenEvery: &every, Max: &ceiling}
		r.build("default", builtin, c)
		return
	}
	for _, key := range s.names {
		if _, err := word(key); err != nil {
			r.mistake(join(s.path, key), err.Error(), key)
		}
		r.build(key, r.definition(s.sub(key)), c)
	}
}

// definition decodes one cadence. What the values mean is the business of package cadence.
func (r *reader) definition(s *section) cadence.Definition {
	var d cadence.Definition
	texts(s, "after", &d.After)
	scalar(s, "then_every", &d.ThenEvery, pointer)
	scalar(s, "max", &d.Max, ceiling)
	scalar(s, "at", &d.At, pointer)
	texts(s, "days", &d.Days)
	r.holidays(s, &d)
	texts(s, "before_deadline", &d.BeforeDeadline)
	scalar(s, "first_mail", &d.FirstMail, boolean)
	scalar(s, "cron", &d.Cron, pointer)
	s.finish()
	return d
}

// build makes a cadence of its definition and turns what package cadence refuses into mistakes,
// unless the key is known to be wrong: a value that could not be read leads to nonsense there.
func (r *reader) build(name string, def cadence.Definition, c *Config) {
	built, err := cadence.Parse(name, def)
	refused, _ := errors.AsType[cadence.DefinitionErrors](err)
	known := r.mistakes
	for _, e := range refused {
		path := join("cadences", name)
		if e.Key != "" {
			path = join(path, e.Key)
		}
		if e.Index >= 0 {
			path = indexed(path, e.Index)
		}
		if !known.about(path) {
			r.mistake(path, e.Reason, e.Value)
		}
	}
	c.Cadences[name] = built
}

// holidays decodes a list of dates, or the name of a file of them.
func (r *reader) holidays(s *section, d *cadence.Definition) {
	if _, ok := s.values["holidays"].(*ast.SequenceNode); ok {
		texts(s, "holidays", &d.Holidays)
		return
	}
	var file string
	scalar(s, "holidays", &file, line)
	if file == "" {
		return
	}
	path := join(s.path, "holidays")
	dates, places, err := r.dateFile(file)
	if err != nil {
		r.mistake(path, err.Error(), file)
		return
	}
	d.Holidays = dates
	for i, at := range places {
		r.of[indexed(path, i)] = at
	}
}
