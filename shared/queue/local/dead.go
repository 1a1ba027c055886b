package local

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"gateway/shared/queue"
)

// Depth is how many messages a queue holds.
type Depth struct {
	Ready  int64 // could be received now
	Hidden int64 // in flight or delayed
	Dead   int64
}

// Depth counts the queue's messages.
func (q *Queue) Depth(ctx context.Context) (Depth, error) {
	var d Depth
	err := q.file.do(ctx, func() error {
		if _, err := q.file.exec(stmtReveal, q.name, q.maxAttempts, q.file.now()); err != nil {
			return err
		}
		return q.file.each(stmtDepth, func(rows *sql.Rows) error {
			var state, n int64
			err := rows.Scan(&state, &n)
			switch state {
			case 0:
				d.Ready = n
			case 1:
				d.Hidden = n
			default:
				d.Dead = n
			}
			return err
		}, q.name)
	})
	return d, err
}

// DeadLetters returns up to limit dead letters after the one with the id after ("" for the
// first), oldest first. They have no receipt.
func (q *Queue) DeadLetters(ctx context.Context, after string, limit int) ([]queue.Message, error) {
	behind, err := parseID(after)
	if err != nil {
		return nil, err
	}
	var out []queue.Message
	err = q.file.do(ctx, func() error {
		out = nil
		if _, err := q.file.exec(stmtReveal, q.name, q.maxAttempts, q.file.now()); err != nil {
			return err
		}
		return q.file.each(stmtDead, func(rows *sql.Rows) error {
			var m queue.Message
			var id int64
			err := rows.Scan(&id, &m.Group, &m.Attempt, &m.Body)
			m.ID = strconv.FormatInt(id, 10)
			out = append(out, m)
			return err
		}, q.name, behind, max(limit, 0))
	})
	return out, err
}

// Redrive makes dead letters ready again, with all their attempts available. Ids that are
// not dead letters are ignored; it returns how many were.
func (q *Queue) Redrive(ctx context.Context, ids ...string) (int, error) {
	n := 0
	err := q.eachDead(ctx, ids, func(id int64) error {
		var group sql.NullString
		err := q.file.each(stmtDeadGroup, func(rows *sql.Rows) error { return rows.Scan(&group) }, id, q.name)
		if err != nil || !group.Valid {
			return err
		}
		n++
		_, err = q.file.exec(stmtRedrive, id, q.turns.next(group.String))
		return err
	})
	if err != nil {
		return 0, err
	}
	q.wake()
	return n, nil
}

// Discard deletes dead letters. Ids that are not dead letters are ignored; it returns how
// many were.
func (q *Queue) Discard(ctx context.Context, ids ...string) (int, error) {
	n := 0
	err := q.eachDead(ctx, ids, func(id int64) error {
		hit, err := q.file.affected(stmtDiscard, id, q.name)
		if err == nil && hit > 0 {
			n++
			_, err = q.file.exec(stmtDeleteBody, id)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (q *Queue) eachDead(ctx context.Context, ids []string, f func(id int64) error) error {
	numbers := make([]int64, len(ids))
	for i, s := range ids {
		var err error
		if numbers[i], err = parseID(s); err != nil {
			return err
		}
	}
	return q.file.do(ctx, func() error {
		if err := q.loadTurns(); err != nil {
			return err
		}
		for _, id := range numbers {
			if err := f(id); err != nil {
				return err
			}
		}
		return nil
	})
}

func parseID(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("queue/local: message id %q does not belong to this queue", s)
	}
	return id, nil
}
