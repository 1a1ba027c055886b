package vendors

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/guard/judge"
	"gateway/shared/wire"
)

// acuvityReady reads the address from the key, which is a token that names it.
func acuvityReady(c *check) *judge.Failure {
	key, _ := c.creds["apiKey"].(string)
	parts := strings.Split(key, ".")
	var claims struct {
		Opaque struct {
			Apex string `json:"apex-url"`
		} `json:"opaque"`
	}
	if len(parts) == 3 {
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
		if err == nil {
			_ = json.Unmarshal(raw, &claims)
		}
	}
	if claims.Opaque.Apex == "" {
		return c.fails(judge.CredentialsError, "needs credentials.apiKey, a token that names its address as opaque.apex-url")
	}
	c.creds["base"] = claims.Opaque.Apex
	return nil
}

// acuvityGuards are Acuvity's guards that have a threshold, with the place of their score.
var acuvityGuards = [][3]string{
	{"prompt_injection", "exploits", "prompt_injection"}, {"jail_break", "exploits", "jail_break"}, {"malicious_url", "exploits", "malicious_url"},
	{"toxic", "malcontents", "toxic"}, {"biased", "malcontents", "biased"}, {"harmful", "malcontents", "harmful"},
}

func acuvityRedactions(a *vendorCall) any {
	out := []string{}
	for _, kind := range []string{"pii", "secrets"} {
		if a.run.is(kind) && a.run.is(kind+"_redact") {
			out = append(out, a.run.listed(kind+"_categories")...)
		}
	}
	return out
}

// acuvity reads an extraction for each part. A text in another than the allowed languages
// fails. Personal data and secrets do not count as findings where they were redacted.
func acuvity(a *vendorCall, resp response) {
	list := resp.list("extractions")
	*resp.bad = *resp.bad || len(list) != len(a.run.s.Texts)
	for i, e := range list {
		for _, g := range acuvityGuards {
			if score := optional[float64](e.get(g[1]), g[2]); score > 0 && a.run.is(g[0]) {
				a.run.score(g[0], score)
				if score >= a.run.number(g[0]+"_threshold", 0.5) {
					a.run.found(g[0])
				}
			}
		}
		if names, _ := e.members("languages", false); a.run.is("language") && len(names) > 0 {
			want := a.run.listed("language_values")
			if len(want) == 0 {
				want = []string{"english"}
			}
			if !slices.ContainsFunc(names, func(n string) bool { return slices.Contains(want, strings.ToLower(n)) }) {
				a.run.found(label("language/" + names[0]))
			}
		}
		a.detections(i, e)
	}
}

func (a *vendorCall) detections(part int, e response) {
	for _, d := range e.listIf("detections") {
		kind, name := strings.ToLower(d.text("type")), strings.ToLower(d.text("name"))
		param := map[string]string{"pii": "pii", "secret": "secrets"}[kind]
		if param == "" || !a.run.is(param) {
			continue
		}
		categories := a.run.listed(param + "_categories")
		in := slices.ContainsFunc(categories, func(c string) bool { return strings.EqualFold(c, name) })
		switch text := optional[string](e, "data"); {
		case len(categories) > 0 && !in:
		case in && a.run.is(param+"_redact") && text != "" && part < len(a.run.s.Texts) && text != a.run.s.Texts[part]:
			a.run.note(label(kind + "/" + name))
			a.run.replace(part, text)
		default:
			a.run.found(label(kind + "/" + name))
		}
	}
}

func aktoPayload(a *vendorCall) any {
	model := a.run.s.Model
	if model == "" {
		model = "unknown"
	}
	raw, _ := json.Marshal(map[string]string{"prompt": a.text, "model": model})
	return string(raw)
}

// akto reports denied content; it does not fail if deny is false.
func akto(a *vendorCall, resp response) {
	switch {
	case resp.flag("Allowed"):
	case a.run.is("deny"):
		a.run.found("not_allowed")
	default:
		a.run.note("not_allowed")
	}
}

// catoMessages returns the conversation with its texts as parts.
func catoMessages(a *vendorCall) any {
	out := []any{}
	for _, m := range a.withResponse().([]message) {
		out = append(out, map[string]any{"role": m.Role, "content": []any{map[string]any{"type": "text", "text": m.Content}}})
	}
	return out
}

// cato blocks, replaces names, or only watches. Its new message replaces the first text part,
// and the other text parts become empty.
func cato(a *vendorCall, resp response) {
	action := resp.get("required_action")
	if action.v == nil && resp.has("analysis_result") {
		return
	}
	switch action.word("action_type", "monitor_action", "block_action", "anonymize_action") {
	case "block_action":
		a.run.found("block_action")
	case "anonymize_action":
		chat := action.get("chat_redaction_result")
		if chat.v == nil {
			chat = resp.get("redacted_chat")
		}
		a.run.note("anonymize_action")
		text := chat.text("redacted_new_message.content")
		for i, t := range a.run.s.Texts {
			if t != "" {
				a.run.replace(i, text)
				text = ""
			}
		}
	}
}

// crowdstrike returns the entire body if it changed it.
func crowdstrike(a *vendorCall, resp response) {
	resp.word("status", "Success")
	result := resp.get("result")
	policy := label(optional[string](result, "policy"))
	if policy == "" {
		policy = "policy"
	}
	switch {
	case result.flag("blocked"):
		a.run.found(policy)
	case !optional[bool](result, "transformed"):
	case !a.run.is("redact"):
		a.run.found(policy)
	default:
		body, err := json.Marshal(value[map[string]any](result, "guard_output"))
		if err != nil || wire.CheckStrict(body, wire.MaxDepth) != nil {
			*resp.bad = true
			return
		}
		a.run.note(policy)
		a.run.body = body
	}
}

func javelin(a *vendorCall, resp response) {
	for _, one := range resp.list("assessments") {
		names, values := one.members("", true)
		for i, name := range names {
			if values[i].flag("request_reject") {
				a.run.found(label(name))
			}
		}
	}
}

// lakera masks its matches if all are personal data, and otherwise fails. Its positions count
// characters.
func lakera(a *vendorCall, resp response) {
	if !resp.flag("flagged") {
		return
	}
	var names []string
	people := true
	for _, b := range resp.listIf("breakdown") {
		if b.flag("detected") {
			name := label(b.text("detector_type"))
			names, people = append(names, name), people && strings.HasPrefix(name, "pii/")
		}
	}
	_, places := a.parted()
	spans := make([][]span, len(a.run.s.Texts))
	whole := true
	for _, p := range resp.listIf("payload") {
		at, start, end := int(optional[float64](p, "message_id")), int(p.number("start")), int(p.number("end"))
		if a.run.is("endInclusive") {
			end++
		}
		name := optional[string](p, "detector_type")
		if at < 0 || at >= len(places) || start < 0 || end <= start || end > len([]rune(a.run.s.Texts[places[at]])) {
			whole = false
			continue
		}
		spans[places[at]] = append(spans[places[at]], span{start, end, "[MASKED_" + token(name) + "]"})
	}
	if len(names) == 0 || !people || !whole || !slices.ContainsFunc(spans, func(s []span) bool { return len(s) > 0 }) {
		a.run.found("flagged")
		for _, name := range names {
			a.run.note(name)
		}
		return
	}
	for i, s := range spans {
		a.run.replace(i, masked(a.run.s.Texts[i], s))
	}
	for _, name := range names {
		a.run.note(name)
	}
}

// token returns the last part of a label, in capital letters.
func token(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	if name = strings.ToUpper(strings.Trim(name, "_")); name == "" {
		return "PII"
	}
	return name
}

// lasso blocks by the actions of its findings, or by its verdict if there are none.
func lasso(a *vendorCall, resp response) {
	violated := resp.flag("violations_detected")
	names, values := resp.members("findings", false)
	acted := false
	for i, name := range names {
		for _, f := range values[i].list("") {
			acted = true
			if action := f.text("action"); action == "BLOCK" {
				a.run.found(label(name))
			} else {
				a.run.note(label(name + "/" + action))
			}
		}
	}
	if violated && !acted {
		a.run.found("violation")
	}
}

func pangea(a *vendorCall, resp response) {
	resp.word("status", "Success")
	names, values := resp.members("result.detectors", true)
	for i, name := range names {
		if values[i].v != nil && optional[bool](values[i], "detected") {
			a.run.found(label(name))
		}
	}
	if optional[bool](resp.get("result"), "blocked") && !a.run.failed {
		a.run.found("blocked")
	}
}

func pangeaPII(a *vendorCall, resp response) {
	resp.word("status", "Success")
	if resp.number("result.count") == 0 {
		return
	}
	list := resp.list("result.redacted_data")
	if len(list) != len(a.run.s.Texts) {
		*resp.bad = true
		return
	}
	for i, one := range list {
		text := one.text("")
		if text != a.run.s.Texts[i] {
			a.run.redact(i, text, "pii")
		}
	}
	if len(a.run.findings) == 0 {
		a.run.found("pii")
	}
}

func airsProfile(a *vendorCall) any {
	out := map[string]any{}
	for _, name := range []string{"profile_name", "profile_id"} {
		if v, _ := a.run.params[name].(string); v != "" {
			out[name] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func airsApp(a *vendorCall) any {
	if name, _ := a.run.params["app_name"].(string); name != "" {
		return "gateway-" + name
	}
	return "gateway"
}

// airsContents returns the parts of a request that scan_scope chooses, or the response.
func airsContents(a *vendorCall) any {
	if a.run.afterResponse() {
		return []any{map[string]any{"response": a.text}}
	}
	scope, _ := a.run.params["scan_scope"].(string)
	text := a.text
	if scope != "" && scope != "last_message" {
		var resp []string
		for _, m := range a.conversation() {
			if scope == "all_messages" || m.Role == "user" {
				resp = append(resp, m.Content)
			}
		}
		if scope == "last_user_message" && len(resp) > 1 {
			resp = resp[len(resp)-1:]
		}
		text = strings.Join(resp, "\n")
	}
	if a.run.is("strip_scaffolding") {
		text = unwrapped(text)
	}
	return []any{map[string]any{"prompt": text}}
}

// scaffolds are tags with which agents wrap the words of their users.
var scaffolds = []string{"system-reminder", "environment_details", "environment_context", "command-message", "ide_opened_file", "user_info"}

// unwrapped removes from a text what agents add. If nothing else is left, the text stays.
func unwrapped(text string) string {
	out := text
	for _, name := range scaffolds {
		for {
			start := strings.Index(out, "<"+name+">")
			if start < 0 {
				break
			}
			end := strings.Index(out[start:], "</"+name+">")
			if end < 0 {
				break
			}
			out = out[:start] + out[start+end+len(name)+3:]
		}
	}
	if out = strings.TrimSpace(out); out == "" {
		return text
	}
	return out
}

func airs(a *vendorCall, resp response) {
	category := label(optional[string](resp, "category"))
	if resp.word("action", "allow", "block", "alert") == "block" {
		if category == "" {
			category = "block"
		}
		a.run.found(category)
	}
}

func pillarScanners(a *vendorCall) any {
	out := map[string]bool{}
	for _, name := range a.run.listed("scanners") {
		out[name] = true
	}
	return out
}

// pillar fails for each requested scanner that found something.
func pillar(a *vendorCall, resp response) {
	names, values := resp.members("", true)
	seen := 0
	for i, name := range names {
		if !slices.Contains(a.run.listed("scanners"), name) {
			continue
		}
		seen++
		if on, is := values[i].v.(bool); values[i].v != nil && (!is || on) {
			a.run.found(name)
		}
	}
	*resp.bad = *resp.bad || seen == 0
}

func (a *vendorCall) promptfoo(resp response) response {
	list := resp.list("results")
	if len(list) == 0 {
		*resp.bad = true
		return response{bad: resp.bad}
	}
	return list[0]
}

func promptfooGuard(a *vendorCall, resp response) {
	flags("categories.jailbreak", "jailbreak")(a, a.promptfoo(resp))
}

func promptfooHarm(a *vendorCall, resp response) {
	r := a.promptfoo(resp)
	if !r.flag("flagged") {
		return
	}
	a.run.found("harm")
	names, values := r.members("categories", false)
	for i, name := range names {
		if optional[bool](values[i], "") {
			a.run.note(label(name))
		}
	}
}

// promptfooPII masks places that are counted in characters.
func promptfooPII(a *vendorCall, resp response) {
	r := a.promptfoo(resp)
	if !r.flag("flagged") {
		return
	}
	var spans []span
	for _, e := range r.get("payload").listIf("pii") {
		name := label(e.text("entity_type"))
		a.run.note(name)
		spans = append(spans, span{int(e.number("start")), int(e.number("end")), "[" + token(name) + "]"})
	}
	a.run.redact(a.part, masked(a.text, spans), "pii")
}

// promptSecurity reads the result about the prompt or the response. With monitorOnly it never
// fails.
func promptSecurity(a *vendorCall, resp response) {
	one := resp.get("result").get(a.run.arg)
	if one.v == nil {
		*resp.bad = true
	}
	if passed, text := one.flag("passed"), optional[string](one, "modified_text"); passed || a.run.is("monitorOnly") {
		if !passed {
			a.run.note("not_passed")
		} else if text != "" && text != a.text && optional[string](one, "action") == "modify" {
			a.run.redact(a.part, text, "modify")
		}
	} else if text != "" && optional[string](one, "action") == "modify" {
		a.run.redact(a.part, text, "modify")
	} else {
		a.run.found("not_passed")
	}
	for _, v := range one.listIf("violations") {
		if name, ok := v.v.(string); ok {
			a.run.note(label(name))
		}
	}
}

// zscalerPolicy returns the number of a policy, which may come as text.
func zscalerPolicy(a *vendorCall) any {
	id := strings.Join(a.run.listed("policyId"), "")
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		return n
	}
	return id
}

func zscaler(a *vendorCall, resp response) {
	if resp.word("action", "ALLOW", "BLOCK", "DETECT") != "ALLOW" {
		names, values := resp.members("detectorResponses", false)
		for i, name := range names {
			if optional[bool](values[i], "triggered") {
				a.run.note(label(name))
			}
		}
	}
	if resp.text("action") == "BLOCK" {
		a.run.found("BLOCK")
	}
}
