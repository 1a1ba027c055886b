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

// Engine asks a table of a workgroup. Safe for concurrent use.
type Engine struct {
	client *athena.Client
	o      Options
	hourly hourly
}

var _ report.Far = (*Engine)(nil)

// Options say what is asked, and for how long.
type Options struct {
	Workgroup string
	Database  string
	Table     string
	Patience  time.Duration    // after which a query is left to itself; 24 s when 0: API Gateway gives up at 29
	Pause     time.Duration    // before the second look at a query; 250 ms when 0
	Clock     func() time.Time // time.Now when nil
	// Spent keeps what the questions of organisations have read, and Hourly is how many
	// bytes those of one may read in an hour, about; nil, 0: there is no bound but the
	// workgroup's for each query.
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

// mostText is what Athena takes of a query, in bytes.
const mostText = 262_144

// sameQuery is for how long the same question is given the query that was started for
// it before: who asks again after a 503 finds it further on. It is shorter than files
// that a merge left behind stay.
const sameQuery = 8 * time.Minute

// Query implements report.Far. A query that takes longer than the patience goes on: the
// 503 says when to ask again, and the same question then finds its answer.
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

// How often a question is begun anew: within a turn of sameQuery, and by one call.
const (
	mostAttempts = 6
	ownAttempts  = 2
)

// errFailed is the end of a query that another attempt may not meet.
type errFailed struct {
	id, reason string
	state      types.QueryExecutionState
	known      bool // it had ended when it was looked at first
}

func (e *errFailed) Error() string {
	return fmt.Sprintf("the query %s is %s: %s", e.id, e.state, e.reason)
}

// succeed gives a query that has its rows. The token of a question gives its query again
// also when that one has failed, so that the next attempt needs another token. Those that
// had failed before this call are passed over.
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

// start begins a query, or finds the one that was begun with the token.
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

// wait waits for the end of a query, looking less and less often; read is how many bytes
// it is charged for, as far as it was seen, and ended whether its end was.
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

// rows reads the rows of a query that has ended, up to a thousand at once. The first one
// names the columns.
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
