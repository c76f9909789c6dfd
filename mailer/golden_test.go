package mailer_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nudged/cadence"
	"nudged/mailer"
	"nudged/scheduler"
)

var update = flag.Bool("update", false, "write the files of testdata/golden anew")

// reader is who gets the mails of one language, and about what.
type reader struct {
	locale, zone               string
	recipient, sender, title   string
	message                    string
	rejected, reason           string
	missing, about             string
	optional                   string
	recipientEmail, senderMail string
}

// readers are one for each built-in language, and one for the test's own right-to-left one.
func readers() []reader {
	return []reader{
		{
			"en-GB", "Europe/London", "Ada Byron", "Grace Hopper of Ledger & Co", "Tax return 2025", "I can start as soon as these are here.\nMany thanks, Grace",
			"Identity card", "The back is missing.", "Salary statements", "All twelve months of 2025.", "Donation receipts", "ada@client.example", "grace@ledger.example",
		},
		{
			"fr", "Europe/Paris", "Zoé L’Héritier", "Cabinet Lefèvre & Associés", "Déclaration de revenus 2025", "Je pourrai commencer dès leur réception.\nBien cordialement, Anne Lefèvre",
			"Carte d’identité", "Le verso manque.", "Bulletins de salaire", "Les douze mois de 2025.", "Reçus de dons", "zoe@client.example", "anne@lefevre.example",
		},
		{
			"de-CH", "Europe/Zurich", "Jörg Müller", "Kanzlei Weiß & Söhne", "Steuererklärung 2025", "Sobald alles da ist, kann ich anfangen.\nFreundliche Grüsse, Ute Weiß",
			"Personalausweis", "Die Rückseite fehlt.", "Lohnausweise", "Alle zwölf Monate des Jahres 2025.", "Spendenbelege", "joerg@bücher.example", "ute@weiss.example",
		},
		{
			"es-MX", "America/Mexico_City", "Íñigo Núñez", "Asesoría Peña", "Declaración de la renta 2025", "Podré empezar en cuanto los reciba.\nUn saludo, Lucía Peña",
			"Documento de identidad", "Falta el reverso.", "Nóminas", "Los doce meses de 2025.", "Justificantes de donaciones", "inigo@client.example", "lucia@pena.example",
		},
		{
			"it", "Europe/Rome", "Nicolò D’Amico", "Studio Rossi", "Dichiarazione dei redditi 2025", "Potrò cominciare non appena li avrò ricevuti.\nCordiali saluti, Chiara Rossi",
			"Carta d’identità", "Manca il retro.", "Buste paga", "Tutti i dodici mesi del 2025.", "Ricevute delle donazioni", "nicolo@client.example", "chiara@rossi.example",
		},
		{
			"nl-BE", "Europe/Brussels", "Loïs de Vries", "Administratiekantoor Jansen", "Belastingaangifte 2025", "Ik kan beginnen zodra ik alles heb.\nMet vriendelijke groet, Daniël Jansen",
			"Identiteitskaart", "De achterkant ontbreekt.", "Loonstroken", "Alle twaalf maanden van 2025.", "Giftenbewijzen", "lois@client.example", "daniel@jansen.example",
		},
		{
			"pt-BR", "America/Sao_Paulo", "Conceição Araújo", "Escritório Gonçalves", "Declaração de imposto de renda 2025", "Posso começar assim que os receber.\nAtenciosamente, João Gonçalves",
			"Documento de identidade", "Falta o verso.", "Comprovantes de salário", "Os doze meses de 2025.", "Recibos de doações", "conceicao@client.example", "joao@goncalves.example",
		},
		{
			"ar-EG", "Africa/Cairo", "ليلى حسن", "مكتب النور للمحاسبة", "الإقرار الضريبي 2025", "سأبدأ العمل فور وصولها.\nمع التحية",
			"بطاقة الهوية", "الوجه الخلفي ناقص.", "كشوف الرواتب", "جميع أشهر 2025.", "إيصالات التبرعات", "layla@client.example", "office@nour.example",
		},
	}
}

// tones are the mails of a series. Their days are counted from 1 May 2026.
func tones() map[string]func(*scheduler.Task) {
	slot := func(name string, day, number int) func(*scheduler.Task) {
		return func(t *scheduler.Task) {
			t.Slot = cadence.Slot{Name: name, Due: t.Link.CreatedAt.Add(time.Duration(day) * 24 * time.Hour)}
			t.Number = number
		}
	}
	rejected := func(t *scheduler.Task) { t.Documents[0].State = scheduler.DocumentRejected }
	return map[string]func(*scheduler.Task){
		"1-first":    slot("0d", 0, 1),
		"2-friendly": slot("3d", 3, 2),
		"3-firm": func(t *scheduler.Task) {
			slot("14d", 14, 4)(t)
			rejected(t)
		},
		"4-last": func(t *scheduler.Task) {
			slot("21d", 21, 5)(t)
			rejected(t)
			t.Last = true
		},
	}
}

func (r reader) task(t *testing.T) scheduler.Task {
	t.Helper()
	zone, err := cadence.LoadZone(r.zone)
	if err != nil {
		t.Fatal(err)
	}
	return scheduler.Task{
		Request: scheduler.Request{
			ID: "request-1", RecipientEmail: r.recipientEmail, RecipientName: r.recipient, Title: r.title, Message: r.message,
			SenderName: r.sender, ReplyTo: r.senderMail, Locale: r.locale, Deadline: cadence.Date{Year: 2026, Month: time.May, Day: 20},
		},
		Link: scheduler.Link{
			URL:       "https://uploads.ledger.example/u/7f3a9c51d2e84b06",
			CreatedAt: time.Date(2026, time.May, 1, 7, 0, 0, 0, time.UTC),
			ExpiresAt: time.Date(2026, time.May, 29, 16, 0, 0, 0, time.UTC),
		},
		Documents: []scheduler.Document{
			{Title: r.rejected, Required: true, State: scheduler.DocumentMissing, RejectionReason: r.reason},
			{Title: r.missing, Description: r.about, Required: true, State: scheduler.DocumentMissing},
			{Title: r.optional, State: scheduler.DocumentMissing},
		},
		Attempt: 1, Zone: zone,
	}
}

// TestGolden compares every language and tone with the bytes that people have read, and reads them
// back as a mail program does.
func TestGolden(t *testing.T) {
	m := composer(t, func(cfg *mailer.Config) {
		cfg.From.Name = "Ledger & Co"
		cfg.Templates = os.DirFS("testdata/templates")
	})
	if err := m.CheckTemplates(); err != nil {
		t.Fatal(err)
	}
	for _, r := range readers() {
		for tone, change := range tones() {
			language, _, _ := strings.Cut(r.locale, "-")
			t.Run(language+"-"+tone, func(t *testing.T) {
				task := r.task(t)
				change(&task)
				msg, got := compose(t, m, task)
				golden(t, filepath.Join("testdata", "golden", language+"-"+tone+".eml"), msg.Data)
				checkMail(t, task, language, got)
			})
		}
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; if that is meant, run the test with -update and read it (-want +got):\n%s", file, diff)
	}
}
