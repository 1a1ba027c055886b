package logs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"unicode/utf8"

	"gateway/shared/admin"
	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/seal"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
)

// content is what a log keeps of a request beside its metrics.
type content struct {
	usage.Bodies
	unreadable bool // there are bodies and they cannot be opened any more
}

// open unseals the bodies of a record. A log whose bodies are lost keeps its
// metrics.
func (f *family) open(ctx context.Context, rec *usage.Record) (c content, err error) {
	if len(rec.Bodies) == 0 {
		return c, nil
	}
	plain, err := f.sealer.Open(ctx, rec.BodiesBinding(), rec.Bodies)
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

// gatewayHeaders begin with this, in lower case.
const gatewayHeaders = "x-gateway-"

// whole is a log as the single read shows it.
func whole(r *usage.Record, c *content, organisation, configVersion string) map[string]any {
	m := row(r, organisation, configVersion)
	delete(m, "created_at") // these stand beside the metrics
	delete(m, "object")
	request := message(c.RequestHeaders, c.Request)
	request["url"], request["method"] = r.Path, r.Method
	if h, ok := request["headers"].(map[string]string); ok {
		fromClient(m, h)
		request["gatewayHeaders"] = split(h)
	}
	response := message(c.ResponseHeaders, c.Response)
	response["status"], response["responseTime"], response["lastUsedOptionJsonPath"] = r.ClientStatus, milliseconds(r.Duration), orNull(r.OptionIndex)
	out := map[string]any{
		"_id": r.ID, "object": "log", "organisation_id": r.Org, "created_at": admin.FormatTime(r.Start),
		"request": request, "response": response, "metrics": m, "usage": units(&r.Usage),
		"attempts": attempts(r), "decision": decision(r), "feedback": []any{},
		"bodies_cut": c.Cut, "bodies_unreadable": c.unreadable,
	}
	if len(c.Sent) > 0 {
		sent := message(c.SentHeaders, c.Sent)
		sent["method"] = r.Method
		out["transformedRequest"] = sent
	}
	if len(c.Received) > 0 {
		out["originalResponse"] = message(nil, c.Received)
	}
	return out
}

// message is a part of a log: headers and body, where they are kept. JSON is
// shown as such, other text as a string, and what is no text in base64.
func message(headers, body []byte) map[string]any {
	m := map[string]any{}
	if len(headers) > 0 {
		var named map[string]string
		if err := json.Unmarshal(headers, &named); err == nil {
			lower := make(map[string]string, len(named))
			for k, v := range named {
				lower[strings.ToLower(k)] = v
			}
			m["headers"] = lower
		}
	}
	switch {
	case len(body) == 0:
	case !utf8.Valid(body):
		m["body"], m["body_encoding"] = base64.StdEncoding.EncodeToString(body), "base64"
	case json.Valid(body):
		m["body"] = json.RawMessage(body)
	default:
		m["body"] = string(body)
	}
	return m
}

// split takes the gateway's own headers out of a request's.
func split(h map[string]string) map[string]string {
	own := make(map[string]string)
	for k, v := range h {
		if strings.HasPrefix(k, gatewayHeaders) {
			own[k] = v
			delete(h, k)
		}
	}
	return own
}

// fromClient tells what client library made the request.
func fromClient(metrics map[string]any, h map[string]string) {
	for name, header := range map[string]string{
		"source": "user-agent", "runtime": "x-stainless-runtime", "runtime_version": "x-stainless-runtime-version", "sdk_version": "x-stainless-package-version",
	} {
		metrics[name] = orNull(h[header])
	}
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

// attempts are the calls to providers, in their order.
func attempts(r *usage.Record) []any {
	out := make([]any, len(r.Attempts))
	for i := range r.Attempts {
		a := &r.Attempts[i]
		out[i] = map[string]any{
			"ai_org": a.Provider, "virtual_key": orNull(a.ProviderSlug), "ai_model": a.Model, "option": orNull(a.OptionIndex),
			"response_status_code": a.Status, "provider_request_id": orNull(a.RequestID), "error_code": orNull(a.ErrorCode),
			"start": milliseconds(a.Start), "latency": milliseconds(a.Latency), "usage": units(&a.Usage), "cost": report.Cents(a.Cost),
			"retry": a.Retry, "wait": milliseconds(a.Wait), "wait_reason": orNull(a.WaitReason),
		}
	}
	return out
}

// decision is what the routing was decided on.
func decision(r *usage.Record) map[string]any {
	draws, breakers := make([]any, len(r.Draws)), make([]any, len(r.Breakers))
	for i, d := range r.Draws {
		draws[i] = map[string]any{"path": d.Path, "number": float64(d.Number) / (1 << 32), "chosen": d.Chosen, "sticky": orNull(d.Sticky)}
	}
	for i, b := range r.Breakers {
		breakers[i] = map[string]any{"path": b.Path, "open": b.Open, "probe": b.Probe}
	}
	matches, skips := make([]any, len(r.Matches)), make([]any, len(r.Skips))
	for i, m := range r.Matches {
		matches[i] = map[string]any{"path": m.Path, "condition": m.Condition, "chosen": m.Chosen}
	}
	for i, s := range r.Skips {
		skips[i] = map[string]any{"path": s.Path, "reason": s.Reason, "code": orNull(s.Code), "status": s.Status}
	}
	losses, missed := []string{}, []string{}
	for _, lost := range r.Losses {
		if path, ok := chat.OfAnswer(lost); ok {
			missed = append(missed, path)
		} else {
			losses = append(losses, lost)
		}
	}
	return map[string]any{"draws": draws, "breakers": breakers, "matches": matches, "skips": skips, "losses": losses, "missed": missed}
}
