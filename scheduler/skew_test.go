package scheduler

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// D16: the replicas' clocks are 90 s off the database's, either way: one mail, and none before its
// instant by the database's clock.
func TestClocksOfReplicasAreOff(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"replicas are late": 90 * time.Second, "replicas are early": -90 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				database := func() time.Time { return time.Now().Add(ahead) }
				store := newMemory(t, database, database().Add(-365*day))
				due := database().Add(10 * time.Minute).Truncate(time.Second)
				store.edit("r", func(s *subject) {
					s.request = &Request{ID: "r", Status: StatusPending, RecipientEmail: "r@example.com"}
					s.link = &Link{CreatedAt: due.Add(-3 * day)}
				})
				var mu sync.Mutex
				var instants []time.Time
				replicas := []*daemon{daemonOver(t, store, nil), daemonOver(t, store, nil)}
				for _, d := range replicas {
					d.mail.composing = func(Task) error {
						mu.Lock()
						defer mu.Unlock()
						instants = append(instants, database())
						return nil
					}
					d.start()
				}
				replicas[0].sleep(time.Until(due.Add(-ahead)) - time.Millisecond)
				if early := store.count(StateClaimed) + store.count(StateSent); early > 0 {
					t.Errorf("%d mails are under way before their instant by the database", early)
				}
				replicas[0].sleep(2 * time.Minute)
				if sent := store.count(StateSent); sent != 1 {
					t.Errorf("%d mails are sent, want one", sent)
				}
				if sent := slices.Concat(replicas[0].mail.order(), replicas[1].mail.order()); !slices.Equal(sent, []string{"r"}) {
					t.Errorf("deliveries %q, want one", sent)
				}
				for _, d := range replicas {
					d.stop()
				}
				if len(instants) != 1 || instants[0].Before(due) || instants[0].After(due.Add(31*time.Second)) {
					t.Errorf("mails at %s, want one within a poll of %s", instants, due)
				}
			})
		})
	}
}
