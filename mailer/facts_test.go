package mailer_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"nudged/cadence"
	"nudged/mailer"
	"nudged/scheduler"
)

// facts is a composer whose text is what one template says.
func facts(t *testing.T, template string) func(scheduler.Task) string {
	t.Helper()
	m := with(t, fstest.MapFS{"body.txt": file(template)})
	return func(task scheduler.Task) string {
		t.Helper()
		_, got := compose(t, m, task)
		return got.text
	}
}

// TestDaysLeft counts calendar days in the recipient's zone, from the day the slot was taken up,
// also where the clock changes in between, or one day is another date elsewhere.
func TestDaysLeft(t *testing.T) {
	days := facts(t, "{{.DaysLeft}} {{.DaysLate}} {{.Deadline.Format \"2006-01-02\"}}")
	for _, row := range []struct {
		zone, since, deadline string
		left, late            int
	}{
		{"Europe/Paris", "2026-03-28T08:00:00Z", "2026-03-30", 2, 0}, // 47 hours: clocks go forward
		{"Europe/Paris", "2026-03-28T23:30:00Z", "2026-03-30", 1, 0}, // the 29th there
		{"Europe/Paris", "2026-10-24T21:59:59Z", "2026-10-26", 2, 0}, // a second before midnight, clocks go back
		{"Europe/Paris", "2026-10-24T22:00:00Z", "2026-10-26", 1, 0}, // midnight
		{"Europe/Paris", "2026-10-25T22:30:00Z", "2026-10-26", 1, 0}, // the day of 25 hours is not over
		{"America/New_York", "2026-11-01T04:30:00Z", "2026-11-02", 1, 0},
		{"America/New_York", "2026-11-02T04:30:00Z", "2026-11-02", 1, 0}, // 23:30 of the first
		{"America/Santiago", "2026-09-05T12:00:00Z", "2026-09-06", 1, 0}, // a day without a midnight
		{"Pacific/Kiritimati", "2026-05-04T19:00:00Z", "2026-05-05", 0, 0},
		{"Pacific/Kiritimati", "2026-05-04T09:00:00Z", "2026-05-05", 1, 0},
		{"Pacific/Pago_Pago", "2026-05-05T10:00:00Z", "2026-05-05", 1, 0},
		{"Pacific/Apia", "2011-12-29T20:00:00Z", "2011-12-31", 2, 0}, // the 30th never came there
		{"Africa/Cairo", "2026-04-23T22:00:00Z", "2026-04-24", 0, 0}, // midnight was skipped
		{"UTC", "2026-05-20T23:59:59Z", "2026-05-20", 0, 0},
		{"UTC", "2026-05-21T00:00:00Z", "2026-05-20", -1, 1},
		{"UTC", "2027-05-20T00:00:00Z", "2026-05-20", -365, 365},
		{"UTC", "2024-02-28T12:00:00Z", "2024-03-01", 2, 0},
	} {
		task := task()
		var err error
		if task.Zone, err = cadence.LoadZone(row.zone); err != nil {
			t.Fatal(err)
		}
		if task.Request.Deadline, err = cadence.ParseDate(row.deadline); err != nil {
			t.Fatal(err)
		}
		if task.Since, err = time.Parse(time.RFC3339, row.since); err != nil {
			t.Fatal(err)
		}
		if got, want := days(task), fmt.Sprintf("%d %d %s", row.left, row.late, row.deadline); got != want {
			t.Errorf("%s on %s: got %q, want %q", row.zone, row.since, got, want)
		}
		task.Slot.Due, task.Since = task.Since, time.Time{}
		if got, want := days(task), fmt.Sprintf("%d %d %s", row.left, row.late, row.deadline); got != want {
			t.Errorf("%s, due %s: got %q, want %q", row.zone, row.since, got, want)
		}
		task.Request.Deadline = cadence.Date{}
		if got := days(task); got != "0 0 0001-01-01" {
			t.Errorf("without a deadline: got %q", got)
		}
	}
}

// TestDaysInWords: plurals in each language, by the rules of CLDR.
func TestDaysInWords(t *testing.T) {
	words := facts(t, `{{template "days-left" .}}|{{plural .Number "one" "# one" "other" "# other"}}`)
	for locale, want := range map[string][]string{ // days late 2, 1, then left 0, 1, 2; and the forms of 0, 1, 2
		"en": {"2 days overdue", "1 day overdue", "today", "tomorrow", "2 days left", "0 other", "1 one", "2 other"},
		"fr": {"dépassée depuis 2 jours", "dépassée depuis 1 jour", "aujourd’hui", "demain", "il reste 2 jours", "0 one", "1 one", "2 other"},
		"de": {"seit 2 Tagen überschritten", "seit 1 Tag überschritten", "heute", "morgen", "noch 2 Tage", "0 other", "1 one", "2 other"},
		"es": {"vencida desde hace 2 días", "vencida desde hace 1 día", "hoy", "mañana", "quedan 2 días", "0 other", "1 one", "2 other"},
		"it": {"scaduta da 2 giorni", "scaduta da 1 giorno", "oggi", "domani", "mancano 2 giorni", "0 other", "1 one", "2 other"},
		"nl": {"2 dagen geleden verstreken", "1 dag geleden verstreken", "vandaag", "morgen", "nog 2 dagen", "0 other", "1 one", "2 other"},
		"pt": {"vencido há 2 dias", "vencido há 1 dia", "hoje", "amanhã", "faltam 2 dias", "0 one", "1 one", "2 other"},
	} {
		task := task()
		task.Request.Locale = locale
		for i, day := range []int{2, 3, 4, 5, 6} {
			task.Request.Deadline.Day = day // the slot is due on the fourth
			if got, _, _ := strings.Cut(words(task), "|"); got != want[i] {
				t.Errorf("%s: got %q, want %q", locale, got, want[i])
			}
		}
		for n := range 3 {
			task.Number = n
			if _, got, _ := strings.Cut(words(task), "|"); got != want[5+n] {
				t.Errorf("%s: got %q, want %q", locale, got, want[5+n])
			}
		}
	}
}

// TestDates: each language writes a date its own way, the first of a month included.
func TestDates(t *testing.T) {
	date := facts(t, `{{template "date" .Deadline}}|{{template "moment" .ExpiresAt}}`)
	for locale, want := range map[string]string{
		"en": "Sunday, 1 March 2026|Monday, 1 June 2026, 15:30 (UTC+5:30)",
		"fr": "dimanche 1er mars 2026|lundi 1er juin 2026 à 15:30 (UTC+5:30)",
		"de": "Sonntag, 1. März 2026|Montag, 1. Juni 2026, 15:30 Uhr (UTC+5:30)",
		"es": "domingo, 1 de marzo de 2026|lunes, 1 de junio de 2026, a las 15:30 (UTC+5:30)",
		"it": "domenica 1 marzo 2026|lunedì 1 giugno 2026, ore 15:30 (UTC+5:30)",
		"nl": "zondag 1 maart 2026|maandag 1 juni 2026 om 15:30 uur (UTC+5:30)",
		"pt": "domingo, 1 de março de 2026|segunda-feira, 1 de junho de 2026, às 15:30 (UTC+5:30)",
	} {
		task := task()
		task.Request.Locale, task.Zone = locale, time.FixedZone("", 5*60*60+30*60)
		task.Request.Deadline = cadence.Date{Year: 2026, Month: time.March, Day: 1}
		if got := date(task); got != want {
			t.Errorf("%s: got %q, want %q", locale, got, want)
		}
	}
	for offset, want := range map[int]string{0: "UTC", -4 * 3600: "UTC-4", -(3*3600 + 1800): "UTC-3:30", 14 * 3600: "UTC+14"} {
		task := task()
		task.Zone = time.FixedZone("", offset)
		if got := facts(t, "{{utc .ExpiresAt}}")(task); got != want {
			t.Errorf("%d: got %q, want %q", offset, got, want)
		}
	}
}

// TestLinkForEver: PostgreSQL's infinity is no date to tell.
func TestLinkForEver(t *testing.T) {
	task := task()
	task.Link.ExpiresAt = scheduler.Forever()
	if _, got := compose(t, composer(t), task); strings.Contains(got.text+got.html, "9999") || strings.Contains(got.text, "works until") {
		t.Errorf("got %s", got.text)
	}
}

// TestTones: the words follow the facts.
func TestTones(t *testing.T) {
	rows := []struct {
		name   string
		change func(*scheduler.Task)
		want   string
	}{
		{"the request itself", func(t *scheduler.Task) { t.Slot.Name, t.Number = "0d", 1 }, "asks you for documents"},
		{"the request itself, and nothing behind it", func(t *scheduler.Task) { t.Slot.Name, t.Last = "0d", true }, "asks you for documents"},
		{"a first reminder", func(t *scheduler.Task) { t.Number = 1 }, "friendly reminder"},
		{"a second mail", func(t *scheduler.Task) { t.Number = 2 }, "friendly reminder"},
		{"a third mail", func(t *scheduler.Task) { t.Number = 3 }, "needs them to continue"},
		{"past the deadline", func(t *scheduler.Task) { t.Request.Deadline.Day = 3 }, "needs them to continue"},
		{"the last one", func(t *scheduler.Task) { t.Last, t.Number = true, 5 }, "last reminder about “Tax return 2025”: Marta Ruiz is still waiting for documents from you. Please upload them before the link expires on 1 June 2026."},
		{"the last one of a link that stays", func(t *scheduler.Task) { t.Last, t.Link.ExpiresAt = true, time.Time{} }, "Please upload them as soon as possible."},
	}
	for _, row := range rows {
		task := task()
		row.change(&task)
		_, got := compose(t, composer(t), task)
		if !strings.Contains(got.text, row.want) || !strings.Contains(got.html, row.want) {
			t.Errorf("%s: %q is lacking in\n%s", row.name, row.want, got.text)
		}
	}
}

// series composes the mails of one request, one for each tone.
func series(t *testing.T, m *mailer.Mailer, locale string) []parsed {
	t.Helper()
	var mails []parsed
	for i, change := range []func(*scheduler.Task){
		func(t *scheduler.Task) { t.Slot.Name = "0d" }, func(*scheduler.Task) {}, func(t *scheduler.Task) { t.Number = 4 }, func(t *scheduler.Task) { t.Last = true },
	} {
		task := task()
		task.Request.Locale = locale
		task.Slot.Name, task.Number = fmt.Sprintf("%dd", i), i+1
		change(&task)
		_, got := compose(t, m, task)
		mails = append(mails, got)
	}
	return mails
}

// TestThread: by default one subject and one root for all mails of a request; else neither.
func TestThread(t *testing.T) {
	for _, locale := range []string{"en", "fr", "de", "es", "it", "nl", "pt"} {
		for _, apart := range []bool{false, true} {
			m := composer(t, func(cfg *mailer.Config) { cfg.NoThread = apart })
			subjects, roots, own := map[string]bool{}, map[string]bool{}, map[string]bool{}
			for _, got := range series(t, m, locale) {
				subjects[got.subject(t)], roots[got.Get("References")], own[got.Get("X-Entity-Ref-Id")] = true, true, true
				if got.Get("References") != got.Get("In-Reply-To") || roots[got.Get("Message-Id")] {
					t.Errorf("%s: got %v", locale, got.Header)
				}
			}
			if !apart && (len(subjects) != 1 || len(roots) != 1 || roots[""] || !own[""]) {
				t.Errorf("%s, in one thread: %v %v", locale, subjects, roots)
			}
			if apart && (len(subjects) != 4 || len(roots) != 1 || !roots[""] || len(own) != 4) {
				t.Errorf("%s, each by itself: %v %v %v", locale, subjects, roots, own)
			}
		}
	}
}

// TestUnsubscribe: the id of the request cannot leave its place in the URL.
func TestUnsubscribe(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, row := range []struct{ pattern, id, want string }{
		{"", "r-1", ""},
		{"https://example.com/stop", "r-1", "<https://example.com/stop>"},
		{"https://example.com/stop/{request_id}", "r-1", "<https://example.com/stop/r-1>"},
		{"https://example.com/stop?id={request_id}&again={request_id}", "a b+c/../?d&e=f#g", "<https://example.com/stop?id=a%20b%2Bc%2F..%2F%3Fd%26e%3Df%23g&again=a%20b%2Bc%2F..%2F%3Fd%26e%3Df%23g>"},
		{"https://example.com/{request_id}", "x>\r\nBcc: evil@example.net", "<https://example.com/x%3E%0D%0ABcc%3A%20evil%40example.net>"},
		{"https://example.com/{request_id}", "ünï{request_id}", "<https://example.com/%C3%BCn%C3%AF%7Brequest_id%7D>"},
		{"https://example.com/{request_id}", long, ""},
		{"mailto:stop+{request_id}@example.com?subject=stop", "r 1,x@y", "<mailto:stop+r%201%2Cx%40y@example.com?subject=stop>"},
	} {
		task := task()
		task.Request.ID = row.id
		msg, got := compose(t, composer(t, func(cfg *mailer.Config) { cfg.Unsubscribe = row.pattern }), task)
		if got.Get("List-Unsubscribe") != row.want || len(got.Header["Bcc"]) > 0 {
			t.Errorf("%s with %q: got %q, want %q", row.pattern, row.id, got.Get("List-Unsubscribe"), row.want)
		}
		click := ""
		if strings.HasPrefix(row.want, "<https:") {
			click = "List-Unsubscribe=One-Click"
		}
		if got.Get("List-Unsubscribe-Post") != click {
			t.Errorf("%s: got List-Unsubscribe-Post %q, want %q", row.pattern, got.Get("List-Unsubscribe-Post"), click)
		}
		if msg.To != "ana@example.net" {
			t.Errorf("goes to %s", msg.To)
		}
	}
}

// TestTextsAreCleaned: lines stay lines, what controls a terminal goes.
func TestTextsAreCleaned(t *testing.T) {
	task := task()
	task.Request.Message = "\n one\r\ntwo\rthree\u2028four\x00\x1b[31m\u0085 \xff\tfive \n\n"
	task.Documents = []scheduler.Document{{Title: "a\nb", Description: "c\r\nd", RejectionReason: "e\n\nf", State: scheduler.DocumentRejected}}
	got := facts(t, "{{printf \"%q\" .Message}} {{printf \"%q\" .Rejected}}")(task)
	if want := `"one\ntwo\nthree\nfour[31m ` + "\ufffd" + `\tfive" [{"a b" "c d" %!q(bool=false) "e f"}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestRightToLeft: a language of that direction says so, and mixed texts keep theirs.
func TestRightToLeft(t *testing.T) {
	files := fstest.MapFS{}
	for _, locale := range []string{"he", "fa", "ur", "ar", "az-arab", "az", "de"} {
		maps.Copy(files, folder(locale))
		files[locale+"/body.txt"] = file("{{.Dir}}")
	}
	m := with(t, files)
	for locale, want := range map[string]string{"he-IL": "rtl", "fa": "rtl", "ur": "rtl", "ar-EG": "rtl", "az-Arab": "rtl", "az": "ltr", "de": "ltr"} {
		task := task()
		task.Request.Locale = locale
		if _, got := compose(t, m, task); got.text != want {
			t.Errorf("%s is written %q, want %q", locale, got.text, want)
		}
	}
	for _, r := range readers() {
		if !strings.HasPrefix(r.locale, "ar") {
			continue
		}
		golden := composer(t, func(cfg *mailer.Config) { cfg.Templates = os.DirFS("testdata/templates") })
		_, got := compose(t, golden, r.task(t))
		if page := checkHTML(t, got.html); page.dir != "rtl" || !strings.Contains(got.html, `<p dir="ltr" style="margin:0 0 16px;font-size:14px;word-break:break-all;">`) {
			t.Errorf("the page is %s", page.dir)
		}
	}
}
