package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/usage"
)

func limitOf(t testing.TB, raw string, rate bool) *Limit {
	t.Helper()
	l, bad := ParseLimit(json.RawMessage(raw), "limit", rate)
	if len(bad) > 0 {
		t.Fatalf("%s: %v", raw, bad)
	}
	l.Begin(noon)
	return l
}

// booked counts requests in sequence with the ledger itself, and returns their records.
type booked struct {
	t      testing.TB
	ledger *ledger.Ledger
	now    time.Time
	limits []*Limit
	byKey  map[string]*ledger.Subject
}

func (b *booked) subject(l *Limit, rec *usage.Record) *ledger.Subject {
	c := course{rec: rec}
	facts := c.facts(Target{}, nil)
	key, ok := l.ValueKey(facts)
	if !ok || !l.Matches(facts) {
		return nil
	}
	at := l.Replaces + "\x00" + key
	if b.byKey[at] == nil {
		b.byKey[at] = l.SubjectOf(store.Scope{Org: "o", Workspace: "w"}, l.Replaces, l.Name, 1, key)
	}
	return b.byKey[at]
}

func (b *booked) serve(rec *usage.Record, bound ledger.Bound, cost pricing.NanoDollars, tokens int64) {
	ctx := context.Background()
	var rates, budgets []*ledger.Subject
	for _, l := range b.limits {
		if s := b.subject(l, rec); s != nil && l.Rate != nil {
			rates = append(rates, s)
		} else if s != nil {
			budgets = append(budgets, s)
		}
	}
	admitted, err := b.ledger.Admit(ctx, "", rates)
	option := ""
	var reserved *ledger.Reservation
	if err == nil {
		option = "config"
		if err = admitted.ReserveTokens(ctx, bound.Tokens); err == nil {
			reserved, err = b.ledger.Reserve(ctx, rec.ID, budgets, bound)
		}
	}
	var f *fault.Fault
	if errors.As(err, &f) {
		if f.Limit == nil {
			b.t.Fatal(f)
		}
		admitted.Return(ctx)
		*rec = usage.Record{ID: rec.ID, Start: rec.Start, Org: rec.Org, Workspace: rec.Workspace, KeyID: rec.KeyID, Metadata: rec.Metadata, Priced: false,
			OptionIndex: option, ErrorCode: string(f.Code), ClientStatus: f.Status(),
			Refusal: &usage.Refusal{Subject: f.Limit.Subject, ID: f.Limit.ID, Entity: f.Limit.Entity, Type: f.Limit.Type, Unit: f.Limit.Unit, Needed: f.Limit.Needed}}
		return
	}
	if err != nil {
		b.t.Fatal(err)
	}
	rec.Cost, rec.Usage = cost, pricing.Usage{}
	rec.Usage.Set(pricing.Input, tokens)
	rec.Attempts[0].Cost, rec.Attempts[0].Usage = rec.Cost, rec.Usage
	if err := reserved.Settle(ctx, cost, tokens); err != nil {
		b.t.Fatal(err)
	}
	admitted.SettleTokens(ctx, tokens)
}

// What the ledger rejected, with the limits that it had, is rejected again, and nothing
// else: by the same limit, the first of them at the same request.
func TestTheSameLimitsRefuseTheSame(t *testing.T) {
	t.Parallel()
	const (
		all  = `"conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"}]`
		team = `"conditions":[{"key":"metadata.team","value":["t0","t1"],"excludes":"t1"}],"group_by":[{"key":"metadata.team"},{"key":"api_key"}]`
	)
	refused := 0
	for name, c := range map[string]struct{ rates, budgets []string }{
		"requests": {rates: []string{`{"replaces":"a","type":"requests","unit":"rpm","value":5,` + all + `}`}},
		"tokens":   {rates: []string{`{"replaces":"a","type":"tokens","unit":"rpm","value":900,` + team + `}`}},
		"money":    {budgets: []string{`{"replaces":"a","type":"cost","credit_limit":1,"periodic_reset_days":1,` + all + `}`}},
		"several": {[]string{`{"replaces":"a","type":"requests","unit":"rph","value":60,` + all + `}`, `{"replaces":"b","type":"tokens","unit":"rpm","value":2000,` + all + `}`},
			[]string{`{"replaces":"c","type":"cost","credit_limit":3,"periodic_reset":"weekly",` + team + `}`, `{"replaces":"d","type":"requests","credit_limit":90,` + all + `}`}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				b := &booked{t: t, now: noon, byKey: map[string]*ledger.Subject{}}
				b.ledger = ledger.New(s, func() time.Time { return b.now }, ledger.Hooks{})
				q := Changes{}
				for i, list := range [][]string{c.rates, c.budgets} {
					for _, raw := range list {
						b.limits, q.Limits = append(b.limits, limitOf(t, raw, i == 0)), append(q.Limits, limitOf(t, raw, i == 0))
					}
				}
				rnd := rand.New(rand.NewPCG(seed, 3))
				run := New(q, installation{})
				want := int64(0)
				for n := range 200 {
					b.now = b.now.Add(time.Duration(rnd.IntN(60_000)) * time.Millisecond * time.Duration(1+rnd.IntN(20)) / 10)
					rec := plain(n)
					rec.Start, rec.KeyID = b.now, fmt.Sprintf("key%d", rnd.IntN(2))
					tokens, cost := int64(1+rnd.IntN(200)), pricing.NanoDollars(1+rnd.IntN(40_000_000))
					bound := ledger.Bound{Cost: cost + pricing.NanoDollars(rnd.IntN(30_000_000)), Priced: true, Tokens: tokens + int64(rnd.IntN(1000)), Assumed: rnd.IntN(3) == 0}
					b.serve(rec, bound, cost, tokens)
					if rec.Refusal != nil {
						want++
					}
					if err := run.Simulate(t.Context(), rec, Bodies{}); err != nil {
						t.Fatal(err)
					}
					if got := run.Result(); got.requests("refused")+got.requests("released") > 0 || got.After.Refused != want || got.Before.Refused != want {
						t.Fatalf("seed %d, request %d, refused by %+v: %+v", seed, n, rec.Refusal, got)
					}
				}
				got, sum := run.Result(), int64(0)
				for _, l := range got.Limits {
					sum += l.Refused
				}
				if got.Before != got.After || sum != want || len(got.Unjudged) > 0 {
					t.Fatalf("%d were refused: %+v", want, got)
				}
				refused += int(want)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if refused < 100 {
		t.Errorf("only %d requests were refused", refused)
	}
}

func TestOtherLimits(t *testing.T) {
	t.Parallel()
	const each = `"conditions":[{"key":"metadata.team","value":"*"}],"group_by":[{"key":"metadata.team"}]`
	// 120 requests, one a second from noon on, of 2 teams in turn, 15 tokens and 30 nano-dollars each.
	got := take(t, Changes{Limits: []*Limit{limitOf(t, `{"name":"ten","type":"requests","unit":"rpm","value":10,`+each+`}`, true)}}, installation{}, many(120)...)
	if l := got.Limits[0]; l.Name != "ten" || l.Counted != 120 || l.Refused != 80 || l.Counters != 2 || !l.First.Equal(noon.Add(20*time.Second)) || *l.FirstID != plain(20).ID || got.After.Refused != 80 || got.After.Cost != 40*3e-6 || got.After.Input != 400 {
		t.Errorf("a rate: %+v", got)
	}
	got = take(t, Changes{Limits: []*Limit{limitOf(t, `{"type":"tokens","credit_limit":100,`+each+`}`, false)}}, installation{}, many(120)...)
	if l := got.Limits[0]; l.Refused != 120-2*7 { // the seventh passes while anything is left
		t.Errorf("a budget of tokens: %+v", got)
	}
	got = take(t, Changes{Limits: []*Limit{limitOf(t, `{"type":"requests","credit_limit":7,"on_exceeded":"audit",`+each+`}`, false)}}, installation{}, many(120)...)
	if l := got.Limits[0]; l.Refused != 0 || l.Exceeded != 106 || got.requests("exceeded") != 106 || got.Before != got.After {
		t.Errorf("one that lets: %+v", got)
	}
	late := limitOf(t, `{"type":"requests","unit":"rpw","value":3,"conditions":[{"key":"model","value":"@p0/*"}],"group_by":[{"key":"virtual_key"}]}`, true)
	if got = take(t, Changes{Limits: []*Limit{late}}, installation{}, many(10)...); got.Limits[0].Refused != 7 {
		t.Errorf("of targets: %+v", got)
	}
	// A rejection by another limit remains, is not charged, and is evaluated again by the limit
	// that replaces it.
	old := plain(0)
	old.Attempts, old.Cost, old.Usage, old.ErrorCode, old.ClientStatus, old.OptionIndex = nil, 0, pricing.Usage{}, string(fault.RateLimited), 429, ""
	old.Refusal = &usage.Refusal{Subject: "key", ID: "key-1", Type: "requests", Unit: "rpm", Needed: 1}
	unknown := *old
	unknown.Refusal = nil
	one := `"type":"requests","unit":"rpm","value":1,` + each
	for name, c := range map[string]struct {
		limit              string
		rec                *usage.Record
		refused, released  int64
		unjudged, stopping string
	}{
		"another limit":    {`{` + one + `}`, old, 1, 0, "", ""},
		"its successor":    {`{"replaces":"key-1",` + one + `}`, old, 0, 1, "", ""},
		"of another unit":  {`{"replaces":"key-1",` + strings.Replace(one, "rpm", "rph", 1) + `}`, old, 1, 0, "", ""},
		"nobody knows why": {`{"replaces":"key-1",` + one + `}`, &unknown, 1, 0, "limit_not_recorded 1", ""},
	} {
		got := take(t, Changes{Limits: []*Limit{limitOf(t, c.limit, true)}}, installation{}, c.rec)
		if got.Before.Refused != 1 || got.After.Refused != c.refused || got.requests("released") != c.released || got.unjudged() != c.unjudged {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Requests that clients reported did not pass the gateway: whatever they cost, no limit counts
// or rejects them. Requests that were settled without a response are counted.
func TestReportedRequestsAreNotCounted(t *testing.T) {
	t.Parallel()
	const each = `"conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"}]}`
	for _, raw := range []string{`{"type":"cost","credit_limit":1,` + each, `{"type":"tokens","credit_limit":100,` + each, `{"type":"requests","credit_limit":2,` + each, `{"type":"requests","unit":"rpw","value":2,` + each, `{"type":"tokens","unit":"rpw","value":100,` + each} {
		rate := strings.Contains(raw, "unit")
		for name, c := range map[string]struct {
			change  func(*usage.Record)
			counted int64
		}{
			"of one call": {func(r *usage.Record) { r.OptionIndex, r.Attempts[0].OptionIndex = "", "" }, 0},
			"of none":     {func(r *usage.Record) { r.OptionIndex, r.Attempts = "", nil }, 0},
			"unconfirmed": {func(r *usage.Record) { r.OptionIndex, r.Attempts, r.Unconfirmed = "", nil, true }, 3},
			"served":      {func(*usage.Record) {}, 3},
		} {
			records := many(3)
			for _, r := range records {
				r.Cost = 5e9 // dollars
				r.Usage.Set(pricing.Output, 1000)
				r.Attempts[0].Cost, r.Attempts[0].Usage = r.Cost, r.Usage
				c.change(r)
			}
			got := take(t, Changes{Limits: []*Limit{limitOf(t, raw, rate)}}, installation{}, records...)
			if l := got.Limits[0]; l.Counted != c.counted || (l.Refused > 0) != (c.counted > 0) {
				t.Errorf("%s %s: %+v", name, raw, l)
			}
		}
	}
}

func TestCountersAreBounded(t *testing.T) {
	t.Parallel()
	l := limitOf(t, `{"type":"requests","unit":"rpm","value":1,"conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"}]}`, true)
	run := New(Changes{Limits: []*Limit{l}}, installation{})
	rec := plain(0)
	for n := range maxBuckets + 1 {
		rec.KeyID = fmt.Sprint(n)
		if err := run.Simulate(t.Context(), rec, Bodies{}); (err != nil) != (n == maxBuckets) {
			t.Fatal(n, err)
		}
	}
}

func TestLimitsThatAreNone(t *testing.T) {
	t.Parallel()
	const good = `"conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"}]`
	for raw, fields := range map[string]string{
		`7`: "", `null`: "", `{}`: "conditions group_by credit_limit",
		`{"type":"cost","credit_limit":1,"what":1,` + good + `}`:                                      "what",
		`{"type":"cost","credit_limit":0,` + good + `}`:                                               "credit_limit",
		`{"credit_limit":1,"name":"","replaces":7,` + good + `}`:                                      "name replaces",
		`{"credit_limit":1,"conditions":[{"key":"no","value":"a"}],"group_by":[{"key":"api_key"}]}`:   "conditions[0].key",
		`{"credit_limit":1,"conditions":[{"key":"api_key"}],"group_by":"x"}`:                          "conditions[0].value group_by",
		`{"credit_limit":1,"conditions":[{"key":"api_key","value":"a"}],"group_by":[{"key":"nope"}]}`: "group_by[0].key",
	} {
		_, bad := ParseLimit(json.RawMessage(raw), "n", false)
		if len(bad) == 0 {
			t.Errorf("%s is taken", raw)
		}
		for field := range strings.FieldsSeq(fields) {
			found := false
			for _, d := range bad {
				found = found || d.Field == field
			}
			if !found {
				t.Errorf("%s: nothing of %s in %v", raw, field, bad)
			}
		}
	}
}
