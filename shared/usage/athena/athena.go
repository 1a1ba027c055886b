package athena

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
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

var _ report.Far = (*Engine)(nil)

// Options say which table to query, and for how long to wait.
type Options struct {
	Workgroup string
	Database  string
	Table     string
	Patience  time.Duration    // how long to wait for a query, which goes on after that; 24 s when 0, since API Gateway gives up at 29
	Pause     time.Duration    // wait before the second look at a query; 250 ms when 0
	Clock     func() time.Time // time.Now when nil
	// Spent records how much the questions of organisations have read. Hourly is about how
	// many bytes the questions of one organisation may read in an hour. nil, 0: the only
	// limit is the workgroup's for each query.
	Spent  store.Table
	Hourly int64
}

// New uses cfg's Region, credentials and HTTP client. It makes no call.
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

// Table implements report.Far.
func (e *Engine) Table() string { return name(e.o.Database) + "." + name(e.o.Table) }

func name(v string) string { return `"` + strings.ReplaceAll(v, `"`, `""`) + `"` }

// mostText is how long a query may be for Athena, in bytes.
const mostText = 262_144

// sameQuery is for how long the same question gets the query that was already started for
// it, so that a client that asks again after a 503 finds the query further on. It must be
// shorter than the time that files stay after a merge has replaced them.
const sameQuery = 8 * time.Minute

// Query implements report.Far. A query that takes longer than the patience goes on. The 503
// says when to ask again, and then the same question finds its answer.
func (e *Engine) Query(ctx context.Context, org, sql string) ([][]*string, error) {
	if len(sql) > mostText {
		return nil, fault.Invalid("time_of_generation_min", "with time_of_generation_max and the filter makes a question that is too long to be told; narrow them")
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
		return nil, later(10*time.Second, "This question is still being answered; ask the same again")
	}
	var busy *types.TooManyRequestsException
	if errors.As(err, &busy) {
		return nil, later(5*time.Second, "Too many questions about usage are being answered; try again")
	}
	return nil, fault.Unavailable(fmt.Errorf("athena: %w", err))
}

func later(wait time.Duration, message string) *fault.Fault {
	f := fault.New(fault.ServiceUnavailable, "", message)
	f.RetryAfter = wait
	return f
}

// How many attempts a question has: within a turn of sameQuery, and within one call.
const (
	mostAttempts = 6
	ownAttempts  = 2
)

// errFailed is a query that failed in a way that another attempt may not.
type errFailed struct {
	id, reason string
	state      types.QueryExecutionState
	known      bool // it had already failed when this call first looked at it
}

func (e *errFailed) Error() string {
	return fmt.Sprintf("the query %s is %s: %s", e.id, e.state, e.reason)
}

// succeed returns the id of a query whose rows are ready. The token of a question leads to
// its query even if that has failed, so the next attempt needs another token. Queries that
// had failed before this call do not count as attempts of the call.
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

// start begins a query, or finds the query that was begun with the token.
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

// wait waits for the end of a query, and looks less and less often. read is for how many
// bytes the query is charged, as far as wait saw; ended tells whether wait saw its end.
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
				return read, true, fault.Invalid("time_of_generation_min", "with time_of_generation_max holds more than one question may read in this installation; narrow them")
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

// rows reads the rows of a query that has ended, up to a thousand at a time. The first row
// has the names of the columns.
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
