package postgres_test

import (
	"testing"

	"nudged/scheduler"
)

// A created_at that stands for "always", "never" or nothing begins no series: nothing is claimed and
// nothing skipped, and the row is shown as one with a mistake until it is put right.
func TestAnchorsThatAreNone(t *testing.T) {
	t.Parallel()
	for created, value := range map[string]string{
		"infinity": "infinity", "-infinity": "-infinity", "0001-01-01T00:00:00Z": "NULL or 0001-01-01T00:00:00Z",
		"9999-12-31T10:00:00Z": "9999-12-31T10:00:00Z", "9999-01-01T00:00:00Z": "9999-01-01T00:00:00Z",
		"1969-12-31T23:59:59Z": "1969-12-31T23:59:59Z", "0044-03-15 12:00:00Z BC": "-0043-03-15T12:00:00Z",
	} {
		t.Run(created, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.exec(`UPDATE nudged.installation SET adopted_at = '2000-01-01T00:00:00Z'`)
			f.due1("r")
			f.exec(`UPDATE nudged.links SET created_at = $1::text::timestamptz`, created)
			if result := f.pass("a"); len(result.Tasks) > 0 || len(result.Skipped) > 0 || f.count(`SELECT count(*) FROM nudged.reminders`) != 0 {
				t.Errorf("%d claims, %v skipped, want neither", len(result.Tasks), result.Skipped)
			}
			if n := f.count(`SELECT count(*) FROM nudged.schedules WHERE problem = 'anchor_out_of_range' AND wake_at IS NULL`); n != 1 {
				t.Error("the row is not shown as one with a mistake")
			}
			in, _, err := f.store.Load(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			mistakes := f.policy.Mistakes(*in.Request, *in.Link)
			if len(mistakes) != 1 || mistakes[0] != (scheduler.Mistake{Problem: scheduler.ProblemBadAnchor, Value: value}) {
				t.Errorf("mistakes %+v, want the value %s", mistakes, value)
			}
			f.exec(`UPDATE nudged.links SET created_at = now() - interval '3 days 1 minute'`)
			if result := f.pass("a"); len(result.Tasks) != 1 || f.count(`SELECT count(*) FROM nudged.schedules WHERE problem IS NOT NULL`) != 0 {
				t.Errorf("%d claims after the row is put right, want 1", len(result.Tasks))
			}
		})
	}
}
