package migrate

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gateway/local/document"
	"gateway/shared/pricing"
)

// group is the deployments of one model name.
type group struct {
	name        string
	deployments []*deployment
	node        *document.Node // the first model_name
	known       string         // a model of the price list: the group is one of many
}

// deployment is one entry of model_list.
type deployment struct {
	slug      string // of the provider
	ai        string // provider of the catalog
	model     string
	defaults  map[string]any
	drop      []any
	timeout   int
	first     int
	retries   int
	hasRetry  bool
	weight    float64
	rpm       float64
	order     int
	tags      []string
	anyModel  bool
	marked    map[string]any // prompt_cache of the target
	limits    map[string]any
	integrate string // slug of the integration
}

func readModels(l *importer) error {
	list := l.root.Get("model_list")
	if err := requireMaps(list, "model_list"); err != nil {
		return err
	}
	for i, item := range list.Items() {
		if err := readModel(l, item, fmt.Sprintf("model_list[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func readModel(l *importer, item *document.Node, at string) error {
	name, params, info := item.Get("model_name"), item.Get("litellm_params"), item.Get("model_info")
	for _, check := range []error{
		name.Expect(at+".model_name", document.Text, document.Number), params.Expect(at+".litellm_params", document.Map), info.Expect(at+".model_info", document.Map),
		params.Get("model").Expect(at+".litellm_params.model", document.Text),
	} {
		if check != nil {
			return check
		}
	}
	if name.Scalar() == "" || params.Get("model").Scalar() == "" {
		l.not(item, "has no model_name or no litellm_params.model")
		return nil
	}
	d, err := readDeployment(l, params, name.Scalar(), at+".litellm_params")
	if err != nil {
		return err
	}
	if d == nil {
		why := l.marks[params.Get("model")].note
		l.not(item, "the model is not imported: "+why)
		return nil
	}
	l.mapped(name, "bare name of the model")
	if err := readInfo(l, d, info, params); err != nil {
		return err
	}
	addDeployment(l, name, d)
	return nil
}

// addDeployment adds a deployment to the group of its name. A name with a wildcard expands to
// the models of the price list.
func addDeployment(l *importer, name *document.Node, d *deployment) {
	text := name.Scalar()
	if !strings.Contains(text, "*") {
		g := groupOf(l, text, name)
		g.deployments = append(g.deployments, d)
		return
	}
	if text == "*" && d.anyModel {
		g := groupOf(l, "*", name)
		g.deployments = append(g.deployments, d)
		l.changed(name, "every model that no other name matches goes to @"+d.slug)
		return
	}
	before, after, _ := strings.Cut(text, "*")
	pattern, tail, _ := strings.Cut(d.model, "*")
	n := 0
	for _, model := range pricing.Default().Models(d.ai) {
		inner, ok := strings.CutPrefix(model, pattern)
		if !ok || !strings.HasSuffix(inner, tail) || len(l.groups) >= maxGroups {
			continue
		}
		one := *d
		one.model = model
		g := groupOf(l, before+strings.TrimSuffix(inner, tail)+after, name)
		if g.known == "" && len(g.deployments) > 0 && !strings.Contains(g.node.Scalar(), "*") {
			continue // a name that is written out counts
		}
		g.known = model
		g.deployments = append(g.deployments, &one)
		n++
	}
	if n == 0 {
		l.not(name, "the price list knows no model that matches; call it as @"+d.slug+"/<model>")
		return
	}
	l.changed(name, fmt.Sprintf("stands for the %d models of the price list that match; others are called as @%s/<model>", n, d.slug))
}

// maxGroups is how many names one router config can have.
const maxGroups = 900

func groupOf(l *importer, name string, at *document.Node) *group {
	g := l.byName[name]
	if g == nil {
		g = &group{name: name, node: at}
		l.byName[name] = g
		l.groups = append(l.groups, g)
	}
	return g
}

// generation are parameters of requests that a model entry sets if a request does not.
var generation = words(`temperature max_tokens max_completion_tokens top_p top_k n stop seed presence_penalty frequency_penalty logit_bias logprobs top_logprobs response_format tools tool_choice parallel_tool_calls user reasoning_effort thinking modalities verbosity prediction audio service_tier store dimensions encoding_format voice speed quality size style safety_settings`)

// readDeployment maps litellm_params. It returns nil if the provider is unknown; the mark of the
// readModel explains why.
func readDeployment(l *importer, params *document.Node, name, at string) (*deployment, error) {
	d := &deployment{defaults: map[string]any{}, order: math.MaxInt32}
	c := newCredential(l, params, name, at)
	if named := params.Get("litellm_credential_name"); named != nil {
		values, ok := l.credentials[l.text(named)]
		if !ok {
			l.not(named, "credential_list has no such credential")
		} else {
			c.also, c.alsoAt = values, "credential_list."+l.text(named)
			l.mapped(named, "credentials of the integration")
		}
	}
	if !c.resolve() {
		return nil, nil
	}
	d.ai, d.model, d.anyModel = c.vendor.id, c.model, c.model == "*"
	d.integrate = c.integration()
	for _, f := range params.Fields() {
		if _, done := l.marks[f.Value]; done {
			continue
		}
		if err := readParam(l, d, f, at); err != nil {
			return nil, err
		}
	}
	d.slug = addProvider(l, d)
	l.mapped(params.Get("model"), "model "+d.model+" of @"+d.slug)
	return d, nil
}

// readParam maps a field of litellm_params that is no credential.
func readParam(l *importer, d *deployment, f document.Field, at string) error {
	v, path := f.Value, at+"."+f.Name
	number := func() (float64, error) {
		n, ok := v.Float()
		if !ok && strings.HasPrefix(v.Scalar(), environPrefix) {
			text, _ := l.env(strings.TrimPrefix(v.Scalar(), environPrefix))
			var err error
			n, err = strconv.ParseFloat(text, 64)
			ok = err == nil
		}
		if !ok || n < 0 {
			return 0, document.Errorf(v.At, path, "must be a number of at least 0")
		}
		return n, nil
	}
	if v.Kind() == document.Null {
		l.mapped(v, "empty")
		return nil
	}
	switch f.Name {
	case "timeout", "request_timeout", "stream_timeout", "max_retries", "num_retries", "weight", "order", "rpm", "tpm", "max_budget":
		n, err := number()
		if err != nil {
			return err
		}
		setNumber(l, d, f.Name, n, v)
	case "budget_duration":
		l.mapped(v, "reset of the provider's budget")
		reset, note := duration(v.Scalar())
		if note != "" {
			l.changed(v, note)
		}
		if d.limits == nil {
			d.limits = map[string]any{}
		}
		for k, r := range reset {
			d.limits[k] = r
		}
	case "tags":
		if err := v.Expect(path, document.List); err != nil {
			return err
		}
		for _, t := range v.Items() {
			d.tags = append(d.tags, t.Scalar())
		}
		l.changed(v, `conditions on the metadata field "tag", if enable_tag_filtering is on`)
	case "drop_params", "allowed_openai_params", "merge_reasoning_content_in_choices", "use_in_pass_through", "use_litellm_proxy", "supports_system_message":
		l.changed(v, "the gateway translates parameters itself and reports losses in x-gateway-translation")
	case "additional_drop_params":
		if err := v.Expect(path, document.List); err != nil {
			return err
		}
		for _, p := range v.Items() {
			d.drop = append(d.drop, p.Scalar())
		}
		l.mapped(v, "drop_params of the target")
	case "extra_body":
		if err := v.Expect(path, document.Map); err != nil {
			return err
		}
		for _, p := range v.Fields() {
			d.defaults[p.Name] = escaped(p.Value.Value())
		}
		l.mapped(v, "default_params of the target")
	case "model", "headers", "extra_headers": // the name of the target, and headers of the integration
	case "mock_response", "mock_tool_calls":
		l.not(v, "the mock provider answers as it does")
	case "max_parallel_requests":
		l.not(v, "there is no limit of parallel requests; use rate limits")
	case "input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost", "cache_creation_input_token_cost", "input_cost_per_image", "output_cost_per_image", "input_cost_per_second", "output_cost_per_second", "output_cost_per_video_per_second", "base_model":
		// read by info
	case "s3_bucket_name", "s3_region_name", "s3_access_key_id", "s3_secret_access_key", "aws_batch_role_arn":
		l.changed(v, "set aws_s3_bucket of the integration; requests name the rest of a batch")
	case "region_name", "allowed_model_region":
		l.not(v, "requests are not filtered by region: write a condition on metadata")
	case "configurable_clientside_auth_params":
		l.not(v, "requests bring credentials by x-gateway headers where the organization allows it")
	case "cache_control_injection_points":
		return readCachePoints(l, d, v, path)
	case "guardrails":
		l.changed(v, "guardrails of the workspace apply to all its models")
	case "auto_router_config", "auto_router_config_path", "auto_router_default_model", "auto_router_embedding_model", "complexity_router_config":
		l.not(v, "there is no routing by the meaning of a prompt; write conditions")
	default:
		if slices.Contains(generation, f.Name) {
			d.defaults[f.Name] = escaped(v.Value())
			l.mapped(v, "default_params of the target")
			return nil
		}
		// The source sends parameters that it does not know to the provider.
		if secretName.MatchString(f.Name) {
			l.not(v, "is not known, and may be a secret, which a config must not contain")
			return nil
		}
		d.defaults[f.Name] = escaped(v.Value())
		l.changed(v, "default_params of the target: sent to the provider, as the source sends it")
	}
	return nil
}

// readCachePoints maps markers for the provider's cache of prompts. The gateway places them where
// turns have a common prefix: at the end of the system prompt and at the last message.
func readCachePoints(l *importer, d *deployment, v *document.Node, at string) error {
	if err := requireMaps(v, at); err != nil {
		return err
	}
	for _, point := range v.Items() {
		if d.marked == nil {
			d.marked = map[string]any{"mode": "auto"}
		}
		if point.Get("control").Get("ttl").Scalar() == "1h" {
			d.marked["ttl"] = "1h"
		}
		l.changed(point, "prompt_cache of the target: marks the end of the system prompt and the last message")
	}
	if len(v.Items()) == 0 {
		l.mapped(v, "empty")
	}
	return nil
}

// secretName matches names of parameters that may hold a secret.
var secretName = regexp.MustCompile(`(?i)key|secret|token$|password|passwd|credential|auth|cert`)

func setNumber(l *importer, d *deployment, name string, n float64, v *document.Node) {
	limit := func(kind string) {
		l.mapped(v, "rate limit of the provider")
		rates, _ := d.limit("rate_limits").([]any)
		d.limits["rate_limits"] = append(rates, map[string]any{"type": kind, "unit": "rpm", "value": int(max(n, 1))})
	}
	switch name {
	case "timeout", "request_timeout":
		d.timeout = milliseconds(n)
		l.mapped(v, "request_timeout of the target")
	case "stream_timeout":
		d.first = min(milliseconds(n), 600_000)
		l.changed(v, "first_token_timeout of the target: the time to the first token of a stream")
	case "max_retries", "num_retries":
		d.retries, d.hasRetry = min(int(n), maxRetries), true
		l.mapped(v, "retry of the target")
		if int(n) > maxRetries {
			l.changed(v, fmt.Sprint("at most ", maxRetries, " retries"))
		}
	case "weight":
		d.weight = n
		l.mapped(v, "weight of the target")
	case "order":
		d.order = int(n)
		l.mapped(v, "tier of a fallback")
	case "rpm":
		d.rpm = n
		limit("requests")
	case "tpm":
		limit("tokens")
	case "max_budget":
		d.limit("")
		d.limits["credit_limit"] = n
		l.mapped(v, "budget of the provider")
	}
}

const maxRetries = 5

func milliseconds(seconds float64) int { return int(min(seconds, 86_400) * 1000) }

func (d *deployment) limit(name string) any {
	if d.limits == nil {
		d.limits = map[string]any{}
	}
	return d.limits[name]
}

// addProvider returns the slug of a provider with the limits of a deployment.
func addProvider(l *importer, d *deployment) string {
	fields := map[string]any{"slug": d.integrate, "name": d.integrate, "integration_id": d.integrate}
	if len(d.limits) > 0 {
		slug := d.integrate + "-" + digest(d.limits)
		fields["slug"], fields["name"] = slug, slug
		if rates := d.limits["rate_limits"]; rates != nil {
			fields["rate_limits"] = rates
		}
		if amount := d.limits["credit_limit"]; amount != nil {
			budget := map[string]any{"credit_limit": amount}
			for _, n := range []string{"periodic_reset", "periodic_reset_days"} {
				if v := d.limits[n]; v != nil {
					budget[n] = v
				}
			}
			fields["usage_limits"] = budget
		}
	}
	l.add("providers", fields)
	return fields["slug"].(string)
}

// duration maps the period of a budget.
func duration(text string) (reset map[string]any, note string) {
	text = strings.TrimSpace(text)
	unit := strings.TrimLeft(text, "0123456789")
	n, _ := strconv.Atoi(strings.TrimSuffix(text, unit))
	days := 0
	switch unit {
	case "mo", "month", "months":
		if n <= 1 {
			return map[string]any{"periodic_reset": "monthly"}, ""
		}
		days = 30 * n
		note = fmt.Sprint("every ", days, " days")
	case "d", "day", "days":
		days = n
	case "w", "week", "weeks":
		days = 7 * n
	case "h", "m", "s", "":
		seconds := map[string]int{"h": 3600, "m": 60, "s": 1}[unit] * n
		days = max((seconds+86_399)/86_400, 1)
		note = fmt.Sprint("budgets are reset by whole days: every ", days, " days")
	default:
		return nil, "is not a known period: the budget is not reset"
	}
	switch {
	case days == 7:
		return map[string]any{"periodic_reset": "weekly"}, note
	case days == 30:
		return map[string]any{"periodic_reset": "monthly"}, "monthly"
	case days < 1 || days > 365:
		return nil, "budgets are reset after 1 to 365 days: this one is not reset"
	}
	return map[string]any{"periodic_reset_days": days}, note
}

func words(text string) []string { return strings.Fields(text) }
