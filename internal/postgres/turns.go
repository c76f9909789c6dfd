package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	turnsOfPasses = 4       // how many passes a list is for: so long waits, at most, who became due meanwhile
	turnsAmong    = 100_000 // due ones that are lined up; the accounts behind them are not seen yet

	crowdShare = 16 // an account crowds a pass with more than one, and more than one in so many of its requests
	aloneRest  = 10 // an account that is alone is not asked about again for so many times what asking took
)

// turns lets accounts take turns while more is due than one pass takes and one of them crowds the
// others out. As long as everything due fits into a pass, or many accounts share it, going by age is
// fair: then it does nothing, and costs nothing. Where one account is alone it costs little.
type turns struct {
	mu     sync.Mutex
	wanted bool      // whoever comes next is not told by age alone
	ids    []string  // request ids, not yet offered to a pass
	rest   time.Time // until when nobody is asked: one account was alone
}

// next returns up to n requests to take, or none where age alone tells who comes next.
func (t *turns) next(ctx context.Context, tx pgx.Tx, n int) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n == 0 || !t.wanted {
		return nil, nil
	}
	if len(t.ids) == 0 && time.Now().After(t.rest) {
		if err := t.ask(ctx, tx, turnsOfPasses*n); err != nil {
			return nil, fmt.Errorf("ask whose turn it is: %w", err)
		}
	}
	n = min(n, len(t.ids))
	ids := t.ids[:n]
	t.ids = t.ids[n:]
	return ids, nil
}

// ask lines up the next so many requests. An account that has nobody to take turns with goes by age.
func (t *turns) ask(ctx context.Context, tx pgx.Tx, n int) error {
	begun := time.Now()
	rows, err := tx.Query(ctx, turnsSQL, n, turnsAmong)
	if err != nil {
		return err
	}
	var id, account string
	accounts := map[string]bool{}
	if _, err := pgx.ForEachRow(rows, []any{&id, &account}, func() error {
		t.ids = append(t.ids, id)
		accounts[account] = true
		return nil
	}); err != nil {
		t.ids = nil
		return err
	}
	if len(accounts) == 1 {
		t.ids, t.rest = nil, time.Now().Add(aloneRest*time.Since(begun))
	}
	// Another replica has nearly the same list: let the two not reach for the same ones.
	rand.Shuffle(len(t.ids), func(i, j int) { t.ids[i], t.ids[j] = t.ids[j], t.ids[i] })
	return nil
}

// over notes how a pass ended that asked for so many due ones, and says whether more may be due.
func (t *turns) over(asked, offered, due int, accounts []string) (more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	full := asked > 0 && due >= asked
	t.wanted = len(t.ids) > 0 || full && crowded(accounts)
	return full || offered > 0
}

// crowded says whether one account has more than its share of what a pass took.
func crowded(accounts []string) bool {
	most := max(1, len(accounts)/crowdShare)
	taken := map[string]int{}
	for _, account := range accounts {
		taken[account]++
		if taken[account] > most {
			return true
		}
	}
	return false
}
