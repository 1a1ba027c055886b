package segment

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gateway/shared/store"
	"gateway/shared/usage"
)

// keepers are the rows of organisations that have usage. Their workspaces may keep logs for
// different times.
func keepers() store.Partition { return store.System("USAGE-KEPT") }

// keeper is the row of one such organisation.
func keeper(org string) store.Row {
	return store.Row{Key: keepers().Key("O", org), Item: store.Item{"org": org}}
}

// Organisations lists organisations that have days, those after after in order, at most so
// many.
func (a *Archive) Organisations(ctx context.Context, after string, most int) (list []string, err error) {
	q := store.Query{Partition: keepers(), Prefix: "O#", Limit: most}
	if after != "" {
		q.After = keepers().Key("O", after).SK()
	}
	page, err := a.table.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("segment: organisations: %w", err)
	}
	for _, row := range page.Rows {
		list = append(list, row.Item.String("org"))
	}
	return list, nil
}

// lateNote is the key of a row that notes that a day got records long after it was over.
func lateNote(org string, day int64) store.Key {
	return keepers().Key("L", org, fmt.Sprintf("%08d", day))
}

// thinLease is for how long one process has the days of an organisation to itself.
const thinLease = 20 * time.Minute

// progress says how far the days of an organisation are thinned.
type progress struct {
	key   store.Key
	rules string // hash of the rules by which they were thinned
	done  int64  // unix second; all days that were over at that time are thinned
	pass  int64  // the same for a pass that is not finished; 0: there is none
	at    int64  // day with which the pass continues
	rev   int64  // revision of the row
}

// thinning removes from an archive what workspaces no longer keep.
type thinning struct{ archive *Archive }

// thinAll thins the days of all organisations. An error for one does not stop the others.
func (a thinning) thinAll(ctx context.Context, now time.Time) error {
	if a.archive.o.Kept == nil {
		return nil
	}
	errs := []error{a.adopt(ctx, adoptRows)}
	q := store.Query{Partition: keepers(), Prefix: "O#"}
	for {
		page, err := a.archive.table.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("segment: retention: %w", err)
		}
		for _, row := range page.Rows {
			if err := a.thinOrg(ctx, row.Item.String("org"), now); err != nil {
				errs = append(errs, err)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if page.Next == "" {
			return errors.Join(errs...)
		}
		q.After = page.Next
	}
}

// thinOrg thins the days of an organisation whose time has ended for some workspace since
// the last call, and the days that got late records.
func (a thinning) thinOrg(ctx context.Context, org string, now time.Time) error {
	kept, err := a.archive.o.Kept(ctx, store.Scope{Org: org})
	if err != nil || !kept.Any() {
		return err
	}
	late, err := a.lateDays(ctx, org)
	if err != nil {
		return err
	}
	p, free, err := a.progressOf(ctx, org, now)
	if err != nil || !free {
		return err
	}
	sum := sha256.Sum256([]byte(ruleText(&kept)))
	rules := hex.EncodeToString(sum[:8])
	if p.rules == rules && p.pass == 0 && len(late) == 0 && p.done/secondsOfDay == now.Unix()/secondsOfDay {
		return nil // a day's time ends at midnight
	}
	if p.rules != rules {
		p.rules, p.done, p.pass, p.at = rules, 0, 0, 0
	}
	if p.pass == 0 {
		p.pass, p.at = now.Unix(), 0
	}
	if mine, err := a.note(ctx, &p, now.Add(thinLease)); err != nil || !mine {
		return err
	}
	if mine, err := a.pass(ctx, org, &kept, &p, now); err != nil || !mine {
		return err
	}
	for _, row := range late {
		if err := a.thinDay(ctx, org, row.Item.Int("hour"), &kept, now); err != nil {
			return err
		}
		err := a.archive.table.Delete(ctx, row.Key, store.IfEqual(store.At("note"), row.Item.Int("note")))
		if _, newer := store.AsCondition(err); err != nil && !newer {
			return fmt.Errorf("segment: retention: %w", err)
		}
	}
	p.done, p.pass, p.at = p.pass, 0, 0
	_, err = a.note(ctx, &p, now)
	return err
}

const secondsOfDay = 24 * hourSeconds

// pass thins the days whose time was over when this pass began, and not yet when the last
// one did. mine is false when another process has taken the organisation meanwhile.
func (a thinning) pass(ctx context.Context, org string, kept *usage.KeptDays, p *progress, now time.Time) (mine bool, err error) {
	then, last := time.Unix(p.pass, 0), time.Unix(p.done, 0)
	all := append(slices.Collect(maps.Values(kept.Of)), kept.Standard)
	due := func(day int64) bool {
		return slices.ContainsFunc(all, func(days int) bool {
			return overIn(day, days, then) && (p.done == 0 || !overIn(day, days, last))
		})
	}
	days, err := a.days(ctx, org, p.at, p.pass/hourSeconds)
	if err != nil {
		return false, err
	}
	for _, day := range days {
		if !due(day) {
			continue
		}
		if err := a.thinDay(ctx, org, day, kept, then); err != nil {
			return false, err
		}
		p.at = day + 24
		if mine, err := a.note(ctx, p, now.Add(thinLease)); err != nil || !mine {
			return false, err
		}
	}
	return true, nil
}

// days lists the days of an organisation that have segments, by their first hour.
func (a thinning) days(ctx context.Context, org string, from, to int64) (days []int64, err error) {
	_, err = a.archive.list(ctx, org, hourKey(from), hourKey(to)+"#~", func(m *Manifest) bool {
		if day := m.Hour - m.Hour%24; len(days) == 0 || days[len(days)-1] != day {
			days = append(days, day)
		}
		return false
	})
	return days, err
}

func (a thinning) lateDays(ctx context.Context, org string) (rows []store.Row, err error) {
	q := store.Query{Partition: keepers(), Prefix: keepers().Key("L", org).SK() + "#"}
	for {
		page, err := a.archive.table.Query(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("segment: retention: %w", err)
		}
		if rows = append(rows, page.Rows...); page.Next == "" {
			return rows, nil
		}
		q.After = page.Next
	}
}

// progressOf reads how far the organisation's days are thinned; free is false while another
// process is working on them.
func (a thinning) progressOf(ctx context.Context, org string, now time.Time) (p progress, free bool, err error) {
	p.key = keepers().Key("P", org)
	item, ok, err := a.archive.table.Get(ctx, p.key, true)
	if err != nil {
		return p, false, fmt.Errorf("segment: retention: %w", err)
	}
	if ok {
		p.rules, p.done, p.pass, p.at, p.rev = item.String("rules"), item.Int("done"), item.Int("pass"), item.Int("at"), item.Int("rev")
	}
	return p, item.Int("until") <= now.UnixMilli(), nil
}

// note writes the progress, and takes the organisation until the given time; mine is false
// when another process has taken it.
func (a thinning) note(ctx context.Context, p *progress, until time.Time) (mine bool, err error) {
	cond := store.IfEqual(store.At("rev"), p.rev)
	if p.rev == 0 {
		cond = store.IfAbsent()
	}
	p.rev++
	item := store.Item{"rules": p.rules, "done": p.done, "pass": p.pass, "at": p.at, "rev": p.rev, "until": until.UnixMilli(), "by": rand.Text()}
	err = a.archive.table.Put(ctx, store.Row{Key: p.key, Item: item}, cond)
	if refused, lost := store.AsCondition(err); lost {
		// If this same row is written a second time, the condition fails as well.
		return refused.Current.String("by") == item.String("by"), nil
	}
	if err != nil {
		return false, fmt.Errorf("segment: retention: %w", err)
	}
	return true, nil
}
