package logs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"gateway/shared/admin"
	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/seal"
	"gateway/shared/usage"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/message"
	"gateway/shared/usage/report"
)

// content is the part of a request that a log stores beside its metrics.
type content struct {
	usage.Bodies
	unreadable bool // there are bodies and they cannot be opened any more
}

// open unseals the bodies of a record. If they are lost, the log has only its metrics.
func (f *family) open(ctx context.Context, rec *usage.Record) (c content, err error) {
	if len(rec.Bodies) == 0 {
		return c, nil
	}
	plain, err := f.Sealer.Open(ctx, rec.BodiesBinding(), rec.Bodies)
	if err == nil {
		if c.Bodies, err = usage.DecodeBodies(plain); err == nil {
			return c, nil
		}
	} else if !errors.Is(err, seal.ErrRefused) {
		return c, err
	}
	slog.Error("bodies of a log cannot be read", "log", rec.ID, "error", err)
	return content{unreadable: true}, nil
}

// log is a log as the single read shows it.
type log struct {
	ID           string                `json:"_id"`
	Object       string                `json:"object" enum:"log"`
	Organisation string                `json:"organisation_id"`
	Created      admin.Instant         `json:"created_at"`
	Request      message.ClientRequest `json:"request"`
	Response     response              `json:"response"`
	Sent         *sent                 `json:"transformedRequest,omitempty"`
	Received     *message.Message      `json:"originalResponse,omitempty"`
	Metrics      metrics               `json:"metrics"`
	Usage        map[string]int64      `json:"usage" doc:"Units by class."`
	Attempts     []attempt             `json:"attempts"`
	Decision     decision              `json:"decision"`
	Hooks        hookResults           `json:"hook_results" doc:"Results of the guardrails for each attempted target, also for streams."`
	Feedback     []rating              `json:"feedback" doc:"Of the request's trace, and of its guardrails."`
	Cut          bool                  `json:"bodies_cut" doc:"A body was truncated because it exceeded the size limit of logs."`
	Unreadable   bool                  `json:"bodies_unreadable"`
	Hidden       bool                  `json:"bodies_hidden" doc:"The caller's role sees logs without bodies and headers."`
}

// rating is a feedback.
type rating struct {
	ID       string          `json:"id"`
	Value    int64           `json:"value"`
	Weight   float64         `json:"weight"`
	Metadata json.RawMessage `json:"metadata" doc:"null if there is none."`
	Created  admin.Instant   `json:"created_at"`
	Updated  admin.Instant   `json:"last_updated_at"`
}

func ratings(all []feedback.Feedback) []rating {
	out := make([]rating, len(all))
	for i := range all {
		f := &all[i]
		out[i] = rating{f.ID, f.Value, f.Weight, f.Metadata, admin.Instant(f.Created), admin.Instant(f.Updated)}
	}
	return out
}

// ofGuards are feedbacks that guardrails of the request gave. They belong to the log and
// cannot be changed.
func ofGuards(r *usage.Record) (out []rating) {
	at := admin.Instant(r.Start.Add(r.Duration))
	for i := range r.Guards {
		if f := r.Guards[i].Feedback; f != nil {
			out = append(out, rating{fmt.Sprintf("%s-%d", r.ID, i+1), f.Value, f.Weight, json.RawMessage(f.Metadata), at, at})
		}
	}
	return out
}

// response is what the client got, sent what the provider was sent.
type (
	response struct {
		message.Message
		Status         int     `json:"status"`
		Time           float64 `json:"responseTime"`
		LastUsedOption *string `json:"lastUsedOptionJsonPath"`
	}
	sent struct {
		message.Message
		Method string `json:"method"`
	}
)

// whole returns a record with its bodies.
func whole(r *usage.Record, c *content, organisation, configVersion string) log {
	out := log{
		ID: r.ID, Object: "log", Organisation: r.Org, Created: admin.Instant(r.Start),
		Request:  message.Request(&c.Bodies, r.Method, r.Path),
		Response: response{message.Of(c.ResponseHeaders, c.Response), r.ClientStatus, milliseconds(r.Duration), admin.NullIfZero(r.OptionIndex)},
		Metrics:  fieldsOf(r, organisation, configVersion), Usage: units(&r.Usage),
		Attempts: attempts(r), Decision: decisionOf(r), Hooks: hooksOf(r), Feedback: []rating{}, Cut: c.Truncated, Unreadable: c.unreadable,
	}
	fromClient(&out.Metrics, out.Request.Headers)
	if len(c.Sent) > 0 {
		out.Sent = &sent{message.Of(c.SentHeaders, c.Sent), r.Method}
	}
	if len(c.Received) > 0 {
		m := message.Of(nil, c.Received)
		out.Received = &m
	}
	return out
}

// fromClient sets the client library of the request.
func fromClient(m *metrics, h map[string]string) {
	m.Source, m.Runtime = admin.NullIfZero(h["user-agent"]), admin.NullIfZero(h["x-stainless-runtime"])
	m.RuntimeVersion, m.SdkVersion = admin.NullIfZero(h["x-stainless-runtime-version"]), admin.NullIfZero(h["x-stainless-package-version"])
}

// units are the counts of a usage by class; classes that were not reported are
// absent.
func units(u *pricing.Usage) map[string]int64 {
	out := make(map[string]int64)
	for class := range pricing.NumClasses {
		if n, ok := u.Get(class); ok {
			out[class.String()] = n
		}
	}
	return out
}

// attempt is a call to a provider.
type attempt struct {
	Provider   string           `json:"ai_org"`
	Slug       *string          `json:"virtual_key"`
	Model      string           `json:"ai_model"`
	Option     *string          `json:"option"`
	Status     int              `json:"response_status_code" doc:"0: no response."`
	RequestID  *string          `json:"provider_request_id"`
	ErrorCode  *string          `json:"error_code" doc:"superseded: the call was ended because the other attempt of a hedge had responded."`
	Start      float64          `json:"start"`
	Latency    float64          `json:"latency"`
	Usage      map[string]int64 `json:"usage" doc:"Units by class."`
	Cost       float64          `json:"cost" doc:"In cost_unit."`
	CostUnit   string           `json:"cost_unit" enum:"cents"`
	CostUSD    json.Number      `json:"cost_usd" doc:"Exact value of cost in US dollars."`
	Retry      int              `json:"retry" doc:"0: the first call of its target."`
	Wait       float64          `json:"wait"`
	WaitReason *string          `json:"wait_reason" doc:"backoff or retry_after of a retry; hedge: the second attempt, made because the first target was slow."`
	Credential *string          `json:"credential" doc:"Label of the credential; null: the integration has one."`
}

// attempts are the calls to providers, in their order.
func attempts(r *usage.Record) []attempt {
	out := make([]attempt, len(r.Attempts))
	for i := range r.Attempts {
		a := &r.Attempts[i]
		out[i] = attempt{
			a.Provider, admin.NullIfZero(a.ProviderSlug), a.Model, admin.NullIfZero(a.OptionIndex), a.Status, admin.NullIfZero(a.RequestID), admin.NullIfZero(a.ErrorCode),
			milliseconds(a.Start), milliseconds(a.Latency), units(&a.Usage), report.Cents(a.Cost), pricing.CostUnit, a.Cost.USD(), a.Retry, milliseconds(a.Wait), admin.NullIfZero(a.WaitReason), admin.NullIfZero(a.Credential),
		}
	}
	return out
}

// decision contains the inputs of the routing decision, and the losses of format conversion.
type decision struct {
	Draws    []draw                `json:"draws"`
	Measured []usage.MeasuredShown `json:"measured" doc:"Choices by latency, cost or load."`
	Breakers []circuit             `json:"breakers"`
	Matches  []match               `json:"matches"`
	Skips    []skip                `json:"skips"`
	Losses   []string              `json:"losses" doc:"Parts of the request that were not sent to the provider."`
	Missed   []string              `json:"missed" doc:"Parts of the provider's response that the client's format cannot represent."`
}

type (
	draw struct {
		Path   string  `json:"path"`
		Number float64 `json:"number"`
		Index  int     `json:"chosen"`
		Sticky *string `json:"sticky"`
	}
	circuit struct {
		Path  string `json:"path"`
		Open  bool   `json:"open"`
		Probe bool   `json:"probe"`
	}
	match struct {
		Path      string `json:"path"`
		Condition int    `json:"condition" doc:"-1: the default."`
		Index     int    `json:"chosen"`
	}
	skip struct {
		Path   string  `json:"path"`
		Reason string  `json:"reason"`
		Code   *string `json:"code"`
		Status int     `json:"status"`
	}
)

func decisionOf(r *usage.Record) decision {
	d := decision{
		Draws: make([]draw, len(r.Draws)), Breakers: make([]circuit, len(r.Breakers)), Matches: make([]match, len(r.Matches)), Skips: make([]skip, len(r.Skips)),
		Measured: usage.DescribeMeasured(r.Measured), Losses: []string{}, Missed: []string{},
	}
	for i, w := range r.Draws {
		d.Draws[i] = draw{w.Path, float64(w.Number) / (1 << 32), w.Index, admin.NullIfZero(w.Sticky)}
	}
	for i, b := range r.Breakers {
		d.Breakers[i] = circuit{b.Path, b.Open, b.Probe}
	}
	for i, m := range r.Matches {
		d.Matches[i] = match{m.Path, m.Condition, m.Index}
	}
	for i, s := range r.Skips {
		d.Skips[i] = skip{s.Path, s.Reason, admin.NullIfZero(s.Code), s.Status}
	}
	for _, lost := range r.Losses {
		if path, ok := chat.ResponsePath(lost); ok {
			d.Missed = append(d.Missed, path)
		} else {
			d.Losses = append(d.Losses, lost)
		}
	}
	return d
}

// hookResults are the verdicts of the guardrails of a request. They come from its record, so
// that they are there for streams and for logs without bodies too, and quote no text.
type hookResults struct {
	Before []hookResult `json:"before_request_hooks"`
	After  []hookResult `json:"after_request_hooks"`
}

type hookResult struct {
	ID          string        `json:"id"`
	Target      string        `json:"target" doc:"Path of the target in the config."`
	Verdict     bool          `json:"verdict"`
	Deny        bool          `json:"deny" doc:"It failed and denies."`
	Async       bool          `json:"async"`
	Transformed bool          `json:"transformed"`
	Time        int64         `json:"execution_time" doc:"Milliseconds."`
	Checks      []failedCheck `json:"checks" doc:"Tests that failed or could not be run."`
}

type failedCheck struct {
	ID      string `json:"id"`
	Verdict bool   `json:"verdict"`
	Errored bool   `json:"errored"`
}

func hooksOf(r *usage.Record) hookResults {
	out := hookResults{[]hookResult{}, []hookResult{}}
	for i := range r.Guards {
		g := &r.Guards[i]
		one := hookResult{g.Hook, g.Path, g.Verdict, g.Denied, g.Async, g.Transformed, g.LatencyMS, []failedCheck{}}
		for _, id := range g.Failed {
			one.Checks = append(one.Checks, failedCheck{ID: id})
		}
		for _, id := range g.Errored {
			one.Checks = append(one.Checks, failedCheck{ID: id, Errored: true})
		}
		if g.Phase == usage.GuardBefore {
			out.Before = append(out.Before, one)
		} else {
			out.After = append(out.After, one)
		}
	}
	return out
}
