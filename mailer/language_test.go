package mailer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"nudged/mailer"
)

// Another default locale is that of every mail from then on; one that there are no templates for changes
// nothing.
func TestSetLocale(t *testing.T) {
	m := composer(t, func(cfg *mailer.Config) {
		cfg.Templates, cfg.Locale = folder("pt-br", "sv"), "fr"
	})
	for _, r := range []struct{ set, want string }{{"sv-FI", "sv"}, {"pt-BR", "pt-br"}, {"pt", "pt"}, {"de-AT", "de"}, {"fr", "fr"}} {
		if err := m.SetLocale(r.set); err != nil {
			t.Fatal(err)
		}
		task := task()
		for locale, want := range map[string]string{"": r.want, "ja": r.want, "it": "it"} {
			task.Request.Locale = locale
			task.Request.Locale = locale
			_, got := compose(t, m, task)
			written := strings.Contains(got.html, `lang="`+want+`"`) || strings.Contains(got.html, "html "+want)
			if !written || m.Language(locale) != want {
				t.Errorf("%s: the mail for %q is not in %s:\n%s", r.set, locale, want, got.html)
			}
		}
	}
	err := m.SetLocale("ja")
	none, ok := errors.AsType[*mailer.LocaleError](err)
	if !ok || none.Locale != "ja" || !slices.Equal(none.Have, []string{"de", "en", "es", "fr", "it", "nl", "pt", "pt-br", "sv"}) || m.Language("") != "fr" {
		t.Errorf("got %v, and mails are in %s", err, m.Language(""))
	}
}
