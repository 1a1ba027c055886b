package admin_test

import (
	"strings"
	"testing"
	"time"

	"gateway/shared/admin"
	"gateway/shared/ledger"
	"gateway/shared/testkit/admintest"
)

// budgeted has one budget, chest several.
type budgeted struct {
	UsageLimits *ledger.UsageLimit `json:"usage_limits,omitempty"`
	RateLimits  []ledger.RateLimit `json:"rate_limits,omitempty"`
	LastResetAt *time.Time         `json:"last_reset_at,omitempty"`
}

type chest struct {
	UsageLimits []ledger.UsageLimit `json:"usage_limits,omitempty"`
	RateLimits  []ledger.RateLimit  `json:"rate_limits,omitempty"`
}

func budgetedFamily(l *ledger.Ledger) admin.Family {
	purses := &admin.Collection[budgeted]{
		Kind: "PURSE", Object: "purse", Path: "/purses", Scope: "purses", Level: admin.InWorkspace, Fields: []admin.Field{admin.NameField(20)},
		Limits: &admin.Limits[budgeted]{Ledger: l, Place: ledger.OnKey, Status: true,
			Budget: func(p *budgeted) **ledger.UsageLimit { return &p.UsageLimits },
			Reset:  func(p *budgeted) **time.Time { return &p.LastResetAt },
			Subject: func(it admin.Item[budgeted]) *ledger.Subject {
				s := &ledger.Subject{Scope: it.Scope, Kind: ledger.Key, ID: it.ID, Label: it.Name, Rates: it.Form.RateLimits, Revision: it.Rev}
				if it.Form.UsageLimits != nil {
					s.Budgets = []ledger.UsageLimit{*it.Form.UsageLimits}
				}
				return s
			}},
	}
	chests := &admin.Collection[chest]{
		Kind: "CHEST", Object: "chest", Path: "/chests", Scope: "purses", Level: admin.InWorkspace, Fields: []admin.Field{admin.NameField(20)},
		Limits: &admin.Limits[chest]{Ledger: l, Place: ledger.OnWorkspace,
			Budgets: func(c *chest) *[]ledger.UsageLimit { return &c.UsageLimits },
			Subject: func(it admin.Item[chest]) *ledger.Subject {
				return &ledger.Subject{Scope: it.Scope, Kind: ledger.Workspace, ID: it.ID, Budgets: it.Form.UsageLimits, Rates: it.Form.RateLimits, Revision: it.Rev}
			}},
	}
	return admin.Family{Name: "purses", Doc: "Purses.", Routes: append(purses.Routes(), chests.Routes()...)}
}

func TestLimitsAreParsedPreparedResetAndShown(t *testing.T) {
	t.Parallel()
	h := admintest.Build(t, func(d admin.Deps) []admin.Family {
		return []admin.Family{budgetedFamily(ledger.New(d.Resources.Store(), time.Now, ledger.Hooks{}))}
	})
	admintest.CheckFamily(t, h)
	const key = admintest.WorkspaceA
	for _, c := range []struct{ path, one, many, budget string }{
		{"/purses", `{"type":"cost","credit_limit":10.5,"periodic_reset":"monthly"}`, `"rate_limits":[{"type":"requests","unit":"rps","value":5}]`, "usage_limits"},
		{"/chests", `[{"type":"tokens","credit_limit":100},{"type":"cost","credit_limit":10.5,"periodic_reset":"monthly"}]`, `"rate_limits":[{"type":"requests","unit":"rpm","value":5}]`, "usage_limits.1"},
	} {
		id := h.Do("POST", c.path, key, `{"name":"a","usage_limits":`+c.one+`,`+c.many+`}`).OK().Text("id")
		at := c.path + "/" + id
		see := func(member string) any {
			t.Helper()
			return h.Do("GET", at, key, nil).OK().At(strings.Split(member, ".")...)
		}
		if see(c.budget+".credit_limit") != 10.5 || see(c.budget+".current_usage") != 0.0 || see(c.budget+".status") != "active" || see("rate_limits.0.value") != 5.0 {
			t.Errorf("%s: %s", at, h.Do("GET", at, key, nil).Body)
		}
		next, _ := see(c.budget + ".next_reset_at").(string)
		if when, err := time.Parse(time.RFC3339, next); err != nil || when.Day() != 1 || !when.After(time.Now()) {
			t.Errorf("%s: the next reset is %q", at, next)
		}
		h.Do("PUT", at, key, `{"name":"b"}`).OK()
		if see(c.budget+".next_reset_at") != next {
			t.Errorf("%s: the period moved", at)
		}
		h.Do("PUT", at, key, `{"reset_usage":true}`).OK()
		if see("last_reset_at") == nil {
			t.Errorf("%s: no reset is shown", at)
		}
		if got := h.Do("GET", c.path, key, nil).OK(); got.At(append([]string{"data", "0"}, strings.Split(c.budget+".credit_limit", ".")...)...) != 10.5 {
			t.Errorf("list: %s", got.Body)
		}
		whole := h.Do("GET", at, key, nil).OK()
		h.Do("PUT", at, key, whole.Body).OK()
		if again := h.Do("GET", at, key, nil).OK(); again.At("reset_usage") != whole.At("reset_usage") || again.At("last_reset_at") != whole.At("last_reset_at") || see(c.budget+".next_reset_at") != next {
			t.Errorf("%s: %s, sent back: %s", at, whole.Body, again.Body)
		}
		budget := strings.Replace(c.one, `"monthly"`, `null,"next_usage_reset_at":"`+next+`"`, 1)
		h.Do("PUT", at, key, `{"usage_limits":`+budget+`}`).OK()
		if got := see(c.budget + ".next_reset_at"); got != nil {
			t.Errorf("%s: without cadence the next reset is %v", at, got)
		}
		h.Do("PUT", at, key, `{"usage_limits":null,"rate_limits":null}`).OK()
		for _, member := range []string{c.budget, "rate_limits.0"} {
			if got := see(member); got != nil {
				t.Errorf("%s: null left %v", member, got)
			}
		}
		for body, field := range map[string]string{
			`{"usage_limits":5}`: "usage_limits", `{"rate_limits":[{"type":"requests","unit":"rpy","value":1}]}`: "rate_limits[0].unit", `{"reset_usage":"yes"}`: "reset_usage",
		} {
			h.Do("PUT", at, key, body).RequireFault(400, "AB01", field)
		}
		h.Do("DELETE", at, key, nil).OK()
	}
}

// policy is a limit itself, of budgets or of rates.
type policy struct {
	Conditions []string           `json:"conditions" min:"1" max:"9"`
	Limit      *ledger.UsageLimit `json:"limit,omitempty"`
	Rate       ledger.RateLimit   `json:"rate"`
}

func policyFamily() admin.Family {
	col := func(path, object string, l *admin.Limits[policy]) []admin.Route {
		return (&admin.Collection[policy]{
			Kind: "POLICY", Object: object, Path: path, Scope: "policies", Level: admin.InWorkspace, Fields: []admin.Field{{Name: "conditions", Required: true}}, Limits: l,
		}).Routes()
	}
	budgets := &admin.Limits[policy]{Place: ledger.OnPolicy, Flat: true, Budget: func(p *policy) **ledger.UsageLimit { return &p.Limit }}
	rates := &admin.Limits[policy]{Place: ledger.OnPolicy, Flat: true, Rate: func(p *policy) *ledger.RateLimit { return &p.Rate }}
	return admin.Family{Name: "policies", Doc: "Policies.", Routes: append(col("/policies/usage", "usage-policy", budgets), col("/policies/rates", "rate-policy", rates)...)}
}

func TestALimitMayBeAResourceItself(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, policyFamily())
	admintest.CheckFamily(t, h)
	const key = admintest.WorkspaceA
	id := h.Do("POST", "/policies/usage", key, `{"conditions":["a"],"type":"requests","credit_limit":10,"alert_threshold":5,"periodic_reset":"weekly"}`).OK().Text("id")
	at := "/policies/usage/" + id
	got := h.Do("GET", at, key, nil).OK()
	if got.Text("type") != "requests" || got.At("credit_limit") != 10.0 || got.Text("periodic_reset") != "weekly" || got.Text("next_usage_reset_at") == "" || got.At("periodic_reset_days") != nil {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", at, key, `{"credit_limit":20,"alert_threshold":null}`).OK()
	h.Do("PUT", at, key, `{"periodic_reset_days":3}`).OK()
	h.Do("PUT", at, key, `{"type":"requests","conditions":["b"]}`).OK()
	got = h.Do("GET", at, key, nil).OK()
	if got.At("credit_limit") != 20.0 || got.At("alert_threshold") != nil || got.At("periodic_reset_days") != 3.0 || got.At("periodic_reset") != nil || got.Text("conditions", "0") != "b" {
		t.Errorf("%s", got.Body)
	}
	for _, body := range []string{`{"periodic_reset":"monthly"}`, `{"periodic_reset_days":null}`} {
		h.Do("PUT", at, key, body).OK()
		if got = h.Do("GET", at, key, nil).OK(); got.Text("periodic_reset") != "monthly" || got.At("periodic_reset_days") != nil || got.Text("next_usage_reset_at") == "" {
			t.Errorf("%s: %s", body, got.Body)
		}
	}
	h.Do("PUT", at, key, `{"periodic_reset":null}`).OK()
	if got = h.Do("GET", at, key, nil).OK(); got.At("periodic_reset") != nil || got.At("next_usage_reset_at") != nil {
		t.Errorf("without cadence: %s", got.Body)
	}
	for body, field := range map[string]string{
		`{"type":"cost"}`: "type", `{"credit_limit":0}`: "credit_limit", `{"credit_limit":null}`: "credit_limit", `{"alert_threshold":20}`: "alert_threshold",
		`{"periodic_reset":"weekly","periodic_reset_days":3}`: "periodic_reset_days", `{"conditions":[]}`: "conditions", `{"periodic_reset":"daily"}`: "periodic_reset",
	} {
		h.Do("PUT", at, key, body).RequireFault(400, "AB01", field)
	}
	h.Do("POST", "/policies/usage", key, `{"type":"cost","conditions":["a"]}`).RequireFault(400, "AB01", "credit_limit")
	h.Do("POST", "/policies/usage", key, `{"credit_limit":5,"conditions":["a"]}`).RequireFault(400, "AB01", "type")
	h.Do("POST", "/policies/usage", key, `{"type":null,"credit_limit":5,"conditions":["a"]}`).RequireFault(400, "AB01", "type")

	id = h.Do("POST", "/policies/rates", key, `{"conditions":["a"],"type":"tokens","unit":"rpm","value":7}`).OK().Text("id")
	at = "/policies/rates/" + id
	h.Do("PUT", at, key, `{"value":8}`).OK()
	if got := h.Do("GET", at, key, nil).OK(); got.At("value") != 8.0 || got.Text("unit") != "rpm" || got.Text("type") != "tokens" {
		t.Errorf("%s", got.Body)
	}
	for body, field := range map[string]string{`{"type":"requests"}`: "type", `{"value":0}`: "value", `{"unit":"rps"}`: "unit", `{"unit":null}`: "unit"} {
		h.Do("PUT", at, key, body).RequireFault(400, "AB01", field)
	}
}
