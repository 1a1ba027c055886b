package segment

import (
	"cmp"
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

// retentionRows is the partition of organizations that have usage and may have workspaces
// with a shorter retention.
func retentionRows() store.Partition { return store.System("USAGE-KEPT") }

// orgRow returns the row of one such organization.
func orgRow(org string) store.Row {
	return store.Row{Key: retentionRows().Key("O", org), Item: store.Item{"org": org}}
}

// Organizations lists at most most organizations with stored days, in order, starting
// after after.
func (a *Archive) Organizations(ctx context.Context, after string, most int) (list []string, err error) {
	q := store.Query{Partition: retentionRows(), Prefix: "O#", Limit: most}
	if after != "" {
		q.After = retentionRows().Key("O", after).SK()
	}
	page, err := a.table.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("segment: organizations: %w", err)
	}
	for _, row := range page.Rows {
		list = append(list, row.Item.String("org"))
	}
	return list, nil
}

// lateNote returns the key of the row that marks a day that received records long after
// its end.
func lateNote(org string, day int64) store.Key {
	return retentionRows().Key("L", org, fmt.Sprintf("%08d", day))
}

// thinLease is how long one process holds the days of an organization exclusively.
const thinLease = 20 * time.Minute

// progress is the progress of thinning the days of an organization.
type progress struct {
	key   store.Key
	rules string // hash of the rules applied
	done  int64  // unix second; all days that had expired by then are thinned
	pass  int64  // the same for an unfinished pass; 0 if there is none
	at    int64  // day at which the pass continues
	rev   int64  // revision of the row
}

// thinner removes records beyond the workspaces' retention from an archive.
type thinner struct{ archive *Archive }

// thinAll thins the days of all organizations. An error for one does not stop the others.
func (a thinner) thinAll(ctx context.Context, now time.Time) error {
	if a.archive.o.WorkspaceRetention == nil {
		return nil
	}
	errs := []error{a.migrate(ctx, migrateRows)}
	q := store.Query{Partition: retentionRows(), Prefix: "O#"}
	for row, err := range store.Rows(ctx, a.archive.table, q) {
		if err != nil {
			return fmt.Errorf("segment: retention: %w", err)
		}
		if err := a.thinOrg(ctx, row.Item.String("org"), now); err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}

// thinOrg thins the days of an organization that expired for some workspace since the
// last call, and the days that received late records.
func (a thinner) thinOrg(ctx context.Context, org string, now time.Time) error {
	retention, err := a.archive.o.WorkspaceRetention(ctx, store.Scope{Org: org})
	if err != nil || !retention.HasOverrides() {
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
	sum := sha256.Sum256([]byte(ruleText(&retention)))
	rules := hex.EncodeToString(sum[:8])
	if p.rules == rules && p.pass == 0 && len(late) == 0 && p.done/secondsOfDay == now.Unix()/secondsOfDay {
		return nil // days expire at midnight
	}
	if p.rules != rules {
		p.rules, p.done, p.pass, p.at = rules, 0, 0, 0
	}
	if p.pass == 0 {
		p.pass, p.at = now.Unix(), 0
	}
	if mine, err := a.saveProgress(ctx, &p, now.Add(thinLease)); err != nil || !mine {
		return err
	}
	if mine, err := a.pass(ctx, org, &retention, &p, now); err != nil || !mine {
		return err
	}
	for _, row := range late {
		if err := a.thinDay(ctx, org, row.Item.Int("hour"), &retention, now); err != nil {
			return err
		}
		err := a.archive.table.Delete(ctx, row.Key, store.IfEqual(store.At("note"), row.Item.Int("note")))
		if _, newer := store.AsCondition(err); err != nil && !newer {
			return fmt.Errorf("segment: retention: %w", err)
		}
	}
	p.done, p.pass, p.at = p.pass, 0, 0
	_, err = a.saveProgress(ctx, &p, now)
	return err
}

const secondsOfDay = 24 * hourSeconds

// pass thins the days that expired between the start of the last pass and of this one.
// mine is false if another process has taken the lease.
func (a thinner) pass(ctx context.Context, org string, retention *usage.WorkspaceRetention, p *progress, now time.Time) (mine bool, err error) {
	then, last := time.Unix(p.pass, 0), time.Unix(p.done, 0)
	all := append(slices.Collect(maps.Values(retention.Of)), retention.Standard)
	due := func(day int64) bool {
		return slices.ContainsFunc(all, func(days int) bool {
			return expiredAfter(day, days, then) && (p.done == 0 || !expiredAfter(day, days, last))
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
		if err := a.thinDay(ctx, org, day, retention, then); err != nil {
			return false, err
		}
		p.at = day + 24
		if mine, err := a.saveProgress(ctx, p, now.Add(thinLease)); err != nil || !mine {
			return false, err
		}
	}
	return true, nil
}

// days lists the days of an organization with segments, by their first hour.
func (a thinner) days(ctx context.Context, org string, from, to int64) (days []int64, err error) {
	_, err = a.archive.list(ctx, org, hourKey(from), hourKey(to)+"#~", func(m *Manifest) bool {
		if day := m.Hour - m.Hour%24; len(days) == 0 || days[len(days)-1] != day {
			days = append(days, day)
		}
		return false
	})
	return days, err
}

func (a thinner) lateDays(ctx context.Context, org string) (rows []store.Row, err error) {
	q := store.Query{Partition: retentionRows(), Prefix: retentionRows().Key("L", org).SK() + "#"}
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

// progressOf reads the organization's progress; free is false while another process holds
// the lease.
func (a thinner) progressOf(ctx context.Context, org string, now time.Time) (p progress, free bool, err error) {
	p.key = retentionRows().Key("P", org)
	item, ok, err := a.archive.table.Get(ctx, p.key, true)
	if err != nil {
		return p, false, fmt.Errorf("segment: retention: %w", err)
	}
	if ok {
		p.rules, p.done, p.pass, p.at, p.rev = item.String("rules"), item.Int("done"), item.Int("pass"), item.Int("at"), item.Int("rev")
	}
	return p, item.Int("until") <= now.UnixMilli(), nil
}

// saveProgress writes the progress and takes the lease until the given time; mine is
// false if another process has taken it.
func (a thinner) saveProgress(ctx context.Context, p *progress, until time.Time) (mine bool, err error) {
	cond := store.IfEqual(store.At("rev"), p.rev)
	if p.rev == 0 {
		cond = store.IfAbsent()
	}
	p.rev++
	item := store.Item{"rules": p.rules, "done": p.done, "pass": p.pass, "at": p.at, "rev": p.rev, "until": until.UnixMilli(), "by": rand.Text()}
	err = a.archive.table.Put(ctx, store.Row{Key: p.key, Item: item}, cond)
	if refused, lost := store.AsCondition(err); lost {
		// The condition also fails if this same row is written a second time.
		return refused.Current.String("by") == item.String("by"), nil
	}
	if err != nil {
		return false, fmt.Errorf("segment: retention: %w", err)
	}
	return true, nil
}

// Early versions marked days for retention before organizations had their own rows. An
// organization with a last day from that time is found by the marks of its days.
const (
	migratePage = 1000
	migrateRows = 10 * migratePage // marks scanned per call, approximately
)

// migrationKey is the row with the progress through these marks.
func migrationKey() store.Key { return retentionRows().Key("A", "notes") }

// migrate scans the marks of days once, a part in each call, and writes the rows of their
// organizations. Newer marks are written together with that row.
func (a thinner) migrate(ctx context.Context, most int) error {
	at, _, err := a.archive.table.Get(ctx, migrationKey(), false)
	if err != nil {
		return fmt.Errorf("segment: retention: %w", err)
	}
	if at.Bool("done") {
		return nil
	}
	found := make(map[string]struct{})
	sort, after := cmp.Or(at.String("sort"), "B"), at.String("after")
	for left := most; left > 0; left -= migratePage {
		page, err := a.archive.table.Query(ctx, store.Query{Partition: dueRows(), Prefix: sort + "#", After: after, Limit: min(left, migratePage)})
		if err != nil {
			return fmt.Errorf("segment: retention: %w", err)
		}
		var rows []store.Row
		for _, row := range page.Rows {
			org := row.Item.String("org")
			if _, known := found[org]; !known {
				found[org] = struct{}{}
				rows = append(rows, orgRow(org))
			}
		}
		if len(rows) > 0 {
			if err := a.archive.table.PutMany(ctx, rows); err != nil {
				return fmt.Errorf("segment: retention: %w", err)
			}
		}
		if after = page.Next; after != "" {
			continue
		}
		if sort == "R" {
			return a.noteAdopted(ctx, store.Item{"done": true})
		}
		sort = "R"
	}
	return a.noteAdopted(ctx, store.Item{"sort": sort, "after": after})
}

func (a thinner) noteAdopted(ctx context.Context, at store.Item) error {
	if err := a.archive.table.Put(ctx, store.Row{Key: migrationKey(), Item: at}); err != nil {
		return fmt.Errorf("segment: retention: %w", err)
	}
	return nil
}
