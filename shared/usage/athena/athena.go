// Package athena runs queries that are too large for one process on Amazon Athena: it
// starts a query in a workgroup, waits for it and reads its rows. The package report
// writes the queries, the package segment the files; functions/docs/guides/athena.md
// explains how to query them.
//
// The role needs athena:StartQueryExecution, GetQueryExecution and GetQueryResults on the
// workgroup; glue:GetDatabase, GetTable and GetPartitions on the table, its database and
// the catalog; and in S3 access to the files, the results and the location of the bucket.
package athena

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/athena"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage/report"
)

// Engine sends queries about a table to a workgroup. It is safe for concurrent use.
type Engine struct {
	client *athena.Client
	o      Options
	hourly hourly
}

var _ report.SQLEngine = (*Engine)(nil)

// Options configures an Engine.
type Options struct {
	Workgroup string
	Database  string
	Table     string
	Patience  time.Duration    // how long to wait for a query, which continues afterwards; 24 s if zero, since API Gateway times out at 29
	Pause     time.Duration    // delay before the second poll of a query; 250 ms if zero
	Clock     func() time.Time // time.Now if nil
	// Spent records how much the queries of organizations have read. Hourly is the
	// approximate number of bytes that one organization may read in an hour. Without them
	// the only limit is the workgroup's for each query.
	Spent  store.Table
	Hourly int64
}

// New uses the Region, credentials and HTTP client of cfg. It makes no call.
func New(cfg aws.Config, o Options) *Engine {
	if o.Patience <= 0 {
		o.Patience = 24 * time.Second
	}
	if o.Pause <= 0 {
		o.Pause = 250 * time.Millisecond
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	e := &Engine{client: athena.NewFromConfig(cfg), o: o}
	if o.Spent != nil && o.Hourly > 0 {
		e.hourly = hourly{o.Spent, o.Hourly}
	}
	return e
}

// Table implements report.SQLEngine.
func (e *Engine) Table() string { return name(e.o.Database) + "." + name(e.o.Table) }

func name(v string) string { return `"` + strings.ReplaceAll(v, `"`, `""`) + `"` }

// mostText is the maximum length of a query in Athena, in bytes.
const mostText = 262_144

// sameQuery is how long the same SQL returns the query that was already started, so that
// a client that retries after a 503 finds its progress. It must be shorter than the time
// that files remain after a merge has replaced them.
const sameQuery = 8 * time.Minute

// Query implements report.SQLEngine. A query that exceeds the patience continues; the 503
// states when to retry, and the retry finds its result.
func (e *Engine) Query(ctx context.Context, org, sql string) ([][]*string, error) {
	if len(sql) > mostText {
		return nil, fault.Invalid("time_of_generation_min", "with time_of_generation_max and the filter results in a query that is too long; narrow them")
	}
	if !utf8.ValidString(sql) || strings.Contains(sql, "\x00") {
		return nil, fault.Invalid("", "the filter has a text that is not UTF-8, or has a NUL")
	}
	ctx, cancel := context.WithTimeout(ctx, e.o.Patience)
	defer cancel()
	id, err := e.succeed(ctx, org, sql)
	if err == nil {
		var rows [][]*string
		if rows, err = e.rows(ctx, id); err == nil {
			return rows, nil
		}
	}
	if f := (*fault.Fault)(nil); errors.As(err, &f) {
		return nil, err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, later(10*time.Second, "This query is still running; repeat the request")
	}
	var busy *types.TooManyRequestsException
	if errors.As(err, &busy) {
		return nil, later(5*time.Second, "Too many usage queries are running; try again")
	}
	return nil, fault.Unavailable(fmt.Errorf("athena: %w", err))
}

func later(wait time.Duration, message string) *fault.Fault {
	f := fault.New(fault.ServiceUnavailable, "", message)
	f.RetryAfter = wait
	return f
}

// Attempts at a query: within a turn of sameQuery, and within one call.
const (
	mostAttempts = 6
	ownAttempts  = 2
)

// errFailed is a query failure that another attempt may not have.
type errFailed struct {
	id, reason string
	state      types.QueryExecutionState
	known      bool // it had failed before this call
}

func (e *errFailed) Error() string {
	return fmt.Sprintf("the query %s is %s: %s", e.id, e.state, e.reason)
}

// succeed returns the id of a query with available rows. A token identifies its query
// even if that has failed, so the next attempt needs another token. Queries that had
// failed before this call do not count as attempts of the call.
func (e *Engine) succeed(ctx context.Context, org, sql string) (id string, err error) {
	turn := e.o.Clock().UnixNano() / int64(sameQuery)
	for n, own := 0, 0; n < mostAttempts && own < ownAttempts; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d.%d\n%s\n%s", turn, n, e.o.Workgroup, sql))
		at := attempt{org, hex.EncodeToString(sum[:]), time.Unix(0, turn*int64(sameQuery))}
		if err := e.hourly.admit(ctx, &at, e.o.Clock()); err != nil {
			return "", err
		}
		if id, err = e.start(ctx, sql, at.token); err == nil {
			var read int64
			var ended bool
			read, ended, err = e.wait(ctx, id)
			e.hourly.note(ctx, &at, read, ended)
		}
		var failed *errFailed
		if !errors.As(err, &failed) {
			return id, err
		}
		if !failed.known {
			own++
		}
	}
	return "", err
}

// start starts a query, or finds the one that was started with the token.
func (e *Engine) start(ctx context.Context, sql, token string) (id string, err error) {
	out, err := e.client.StartQueryExecution(ctx, &athena.StartQueryExecutionInput{
		QueryString: &sql, ClientRequestToken: &token, WorkGroup: &e.o.Workgroup,
		QueryExecutionContext: &types.QueryExecutionContext{Database: &e.o.Database},
	})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.QueryExecutionId), nil
}

// wait polls a query until it ends, less and less often. read is the number of bytes
// charged so far; ended reports whether the query ended.
func (e *Engine) wait(ctx context.Context, id string) (read int64, ended bool, err error) {
	first := true
	for pause := e.o.Pause; ; pause, first = min(pause*3/2, 8*e.o.Pause), false {
		out, err := e.client.GetQueryExecution(ctx, &athena.GetQueryExecutionInput{QueryExecutionId: &id})
		if err != nil {
			return read, false, err
		}
		if out.QueryExecution == nil || out.QueryExecution.Status == nil {
			return read, false, fmt.Errorf("the query %s has no status", id)
		}
		if counted := out.QueryExecution.Statistics; counted != nil {
			read = aws.ToInt64(counted.DataScannedInBytes)
		}
		s := out.QueryExecution.Status
		switch s.State {
		case types.QueryExecutionStateSucceeded:
			return max(read, leastRead), true, nil
		case types.QueryExecutionStateFailed, types.QueryExecutionStateCancelled:
			reason := aws.ToString(s.StateChangeReason)
			if strings.Contains(strings.ToLower(reason), "bytes scanned limit") {
				return read, true, fault.Invalid("time_of_generation_min", "with time_of_generation_max selects more data than one query may read in this installation; narrow them")
			}
			return read, true, &errFailed{id, reason, s.State, first}
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return read, false, ctx.Err()
		}
	}
}

// rows reads the rows of a finished query, up to a thousand at a time. The first row has
// the names of the columns.
func (e *Engine) rows(ctx context.Context, id string) (rows [][]*string, err error) {
	pages := athena.NewGetQueryResultsPaginator(e.client, &athena.GetQueryResultsInput{QueryExecutionId: &id}, func(o *athena.GetQueryResultsPaginatorOptions) { o.Limit = 1000 })
	for first := true; pages.HasMorePages(); first = false {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		if page.ResultSet == nil {
			return nil, fmt.Errorf("the query %s has no rows", id)
		}
		for i, r := range page.ResultSet.Rows {
			if first && i == 0 {
				continue
			}
			row := make([]*string, len(r.Data))
			for k := range r.Data {
				row[k] = r.Data[k].VarCharValue
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// leastRead is the minimum that Athena charges for a successful query, in bytes.
const leastRead = 10 << 20

// noteTime limits the recording of the bytes read after the caller's deadline.
const noteTime = 2 * time.Second

// hourly limits how much the queries of an organization read in an hour. Each attempt has
// a row, identified by its token, so a repeated request for a running attempt is neither
// rejected nor counted again.
type hourly struct {
	table store.Table // nil means no limit
	most  int64       // bytes
}

// attempt is one attempt at a query of an organization.
type attempt struct {
	org, token string
	began      time.Time // start of its turn
}

const hourForm = "2006-01-02T15"

func (a *attempt) rows() store.Partition {
	return store.Scope{Org: a.org}.Partition("ASKED", a.began.UTC().Format(hourForm))
}

// row records the bytes that the attempt has read so far.
func (a *attempt) row(bytes int64) store.Row {
	return store.Row{Key: a.rows().Key(a.token), Item: store.Item{"bytes": bytes}, Expires: a.began.Add(2 * time.Hour)}
}

// unseen is the provisional charge of an attempt until its end is observed, because it
// may continue to read when its caller has left. A charge of all that it may read would
// reject callers who load a page of graphs.
func (h *hourly) unseen() int64 { return h.most / 50 }

// requestQueries groups the queries of one request, in a context.
type requestQueries struct{ admitted atomic.Bool }

type requestQueriesKey struct{}

// WithQueryLimits implements report.SQLEngine.
func (e *Engine) WithQueryLimits(ctx context.Context) context.Context {
	if ctx.Value(requestQueriesKey{}) != nil {
		return ctx
	}
	return context.WithValue(ctx, requestQueriesKey{}, new(requestQueries))
}

// admit admits or rejects an attempt. The limit may be exceeded by queries that are
// running. An admitted query may continue, because its data is already paid for. Errors:
// a 429 fault until the hour is over.
func (h *hourly) admit(ctx context.Context, a *attempt, now time.Time) error {
	if h.table == nil {
		return nil
	}
	question, _ := ctx.Value(requestQueriesKey{}).(*requestQueries)
	if question == nil {
		question = new(requestQueries)
	}
	_, known, err := h.table.Get(ctx, a.rows().Key(a.token), true)
	if err == nil && !known && !question.admitted.Load() {
		err = h.bounded(ctx, a, now)
	}
	if err != nil {
		return err
	}
	question.admitted.Store(true)
	if known {
		return nil
	}
	return h.table.Put(ctx, a.row(h.unseen()))
}

// bounded rejects an attempt if the sum of the hour has reached the limit.
func (h *hourly) bounded(ctx context.Context, a *attempt, now time.Time) error {
	var sum int64
	for q := (store.Query{Partition: a.rows()}); ; {
		page, err := h.table.Query(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Rows {
			sum += page.Rows[i].Item.Int("bytes")
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if sum >= h.most {
		f := fault.New(fault.RateLimited, "time_of_generation_min", fmt.Sprintf("with time_of_generation_max and the filter requires a query of many records, and such queries of this organization have read %d GB of the %d GB allowed per hour: narrow them, or try again in the next hour", sum/1e9, h.most/1e9))
		f.RetryAfter = max(a.nextHour().Sub(now), time.Second)
		return f
	}
	return nil
}

// nextHour returns the start of the first turn that counts for the next hour.
func (a *attempt) nextHour() time.Time {
	turn := int64(sameQuery)
	end := a.began.Truncate(time.Hour).Add(time.Hour).UnixNano()
	return time.Unix(0, (end+turn-1)/turn*turn)
}

// note records how many bytes an attempt has read: at its end, or so far.
func (h *hourly) note(ctx context.Context, a *attempt, bytes int64, ended bool) {
	if h.table == nil {
		return
	}
	if !ended {
		bytes = max(bytes, h.unseen())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	if err := h.table.Put(ctx, a.row(bytes)); err != nil {
		slog.Warn("the bytes read by a query were not recorded", "bytes", bytes, "error", err.Error())
	}
}
