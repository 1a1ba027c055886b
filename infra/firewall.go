package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awswafv2"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/host/placement"
)

// firewallName is the name of the web ACL.
func firewallName(o options) string { return o.name + "-edge" }

// bodyRules are the managed rules that look at bodies. Prompts look like attacks, so these
// rules only count.
var bodyRules = append([]string{"SizeRestrictions_BODY", "GenericRFI_BODY"}, settingRules...)

// settingRules also block, but only on paths with bodies of settings. The other two rules of
// bodyRules do not: lists of models and members exceed the size limit of one, and users
// configure hosts by IP address, which the other one blocks.
var settingRules = []string{"CrossSiteScripting_BODY", "GenericLFI_BODY", "EC2MetaDataSSRF_BODY"}

// queryRules only count: clients of MCP and of sign-in give addresses of their own machine
// to return to, and send codes and states that are longer than the size limit.
var queryRules = []string{"SizeRestrictions_QUERYSTRING", "GenericRFI_QUERYARGUMENTS", "EC2MetaDataSSRF_QUERYARGUMENTS"}

// wordy are the families with bodies beyond settings: text of users and models, files,
// descriptions of tools, and XML of identity providers.
var wordy = []string{"agentservers", "analytics", "auth", "dryrun", "feedback", "guardrails", "logs", "mcp", "mcpservers", "partials", "promptruns", "prompts"}

// newFirewall makes the web ACL of the distribution. The API needs none: its functions
// answer only requests that come from the edge.
func newFirewall(stack awscdk.Stack, id string, o options) awswafv2.CfnWebACL {
	name := firewallName(o)
	rules := []any{
		managed(0, "AWSManagedRulesCommonRuleSet", slices.Concat(bodyRules, queryRules, []string{"NoUserAgent_HEADER"})...),
		blockBodies(1),
		managed(2, "AWSManagedRulesKnownBadInputsRuleSet", "Log4JRCE_BODY", "JavaDeserializationRCE_BODY", "ReactJSRCE_BODY"),
	}
	if o.perAddress > 0 {
		rules = append(rules, perAddress(3, o.perAddress))
	}
	return awswafv2.NewCfnWebACL(stack, jsii.String(id), &awswafv2.CfnWebACLProps{
		Name: jsii.String(name), Scope: jsii.String("CLOUDFRONT"), VisibilityConfig: visible(name), Rules: rules,
		DefaultAction: &awswafv2.CfnWebACL_DefaultActionProperty{Allow: map[string]any{}},
	})
}

// perAddress blocks an address that sends more requests than most in five minutes.
func perAddress(priority, most float64) *awswafv2.CfnWebACL_RuleProperty {
	return &awswafv2.CfnWebACL_RuleProperty{
		Name: jsii.String("requests-per-address"), Priority: jsii.Number(priority), VisibilityConfig: visible("requests-per-address"),
		Action: &awswafv2.CfnWebACL_RuleActionProperty{Block: map[string]any{}},
		Statement: &awswafv2.CfnWebACL_StatementProperty{RateBasedStatement: &awswafv2.CfnWebACL_RateBasedStatementProperty{
			AggregateKeyType: jsii.String("IP"), Limit: jsii.Number(most),
		}},
	}
}

func visible(name string) *awswafv2.CfnWebACL_VisibilityConfigProperty {
	return &awswafv2.CfnWebACL_VisibilityConfigProperty{
		CloudWatchMetricsEnabled: jsii.Bool(true), MetricName: jsii.String(name), SampledRequestsEnabled: jsii.Bool(false), // samples would contain keys
	}
}

// managed is a rule group of AWS; the rules named in counted do not block.
func managed(priority float64, group string, counted ...string) *awswafv2.CfnWebACL_RuleProperty {
	var overrides []any
	for _, rule := range counted {
		overrides = append(overrides, &awswafv2.CfnWebACL_RuleActionOverrideProperty{
			Name: jsii.String(rule), ActionToUse: &awswafv2.CfnWebACL_RuleActionProperty{Count: map[string]any{}},
		})
	}
	return &awswafv2.CfnWebACL_RuleProperty{
		Name: jsii.String(group), Priority: jsii.Number(priority), VisibilityConfig: visible(group),
		OverrideAction: &awswafv2.CfnWebACL_OverrideActionProperty{None: map[string]any{}},
		Statement: &awswafv2.CfnWebACL_StatementProperty{ManagedRuleGroupStatement: &awswafv2.CfnWebACL_ManagedRuleGroupStatementProperty{
			VendorName: jsii.String("AWS"), Name: jsii.String(group), RuleActionOverrides: overrides,
		}},
	}
}

// blockBodies blocks bodies of settings that one of settingRules has labeled.
func blockBodies(priority float64) *awswafv2.CfnWebACL_RuleProperty {
	var labels, paths []any
	for _, rule := range settingRules {
		labels = append(labels, &awswafv2.CfnWebACL_StatementProperty{LabelMatchStatement: &awswafv2.CfnWebACL_LabelMatchStatementProperty{
			Scope: jsii.String("LABEL"), Key: jsii.String("awswaf:managed:aws:core-rule-set:" + labelOf(rule)),
		}})
	}
	for _, pattern := range settingPatterns() {
		paths = append(paths, &awswafv2.CfnWebACL_StatementProperty{RegexMatchStatement: &awswafv2.CfnWebACL_RegexMatchStatementProperty{
			FieldToMatch: &awswafv2.CfnWebACL_FieldToMatchProperty{UriPath: map[string]any{}}, RegexString: jsii.String(pattern),
			TextTransformations: []any{&awswafv2.CfnWebACL_TextTransformationProperty{Priority: jsii.Number(0), Type: jsii.String("URL_DECODE")}},
		}})
	}
	or := func(of []any) any {
		if len(of) == 1 { // an "or" needs at least two
			return of[0]
		}
		return &awswafv2.CfnWebACL_StatementProperty{OrStatement: &awswafv2.CfnWebACL_OrStatementProperty{Statements: of}}
	}
	return &awswafv2.CfnWebACL_RuleProperty{
		Name: jsii.String("administration-bodies"), Priority: jsii.Number(priority), VisibilityConfig: visible("administration-bodies"),
		Action: &awswafv2.CfnWebACL_RuleActionProperty{Block: map[string]any{}},
		Statement: &awswafv2.CfnWebACL_StatementProperty{AndStatement: &awswafv2.CfnWebACL_AndStatementProperty{
			Statements: []any{or(labels), or(paths)},
		}},
	}
}

// labelOf is the label of a rule: GenericLFI_BODY is labeled GenericLFI_Body.
func labelOf(rule string) string { return strings.TrimSuffix(rule, "BODY") + "Body" }

// maxPattern is how long a regular expression of a firewall may be.
const maxPattern = 512

// settingPatterns match the paths of settings as clients send them: below each base that
// the edge leads to version 1.
func settingPatterns() []string {
	const start, end = `^(?:/openai)?(?:/v[12]){1,2}/(?:`, `)(?:/|$)`
	var out []string
	for _, prefix := range settingPrefixes() {
		prefix = regexp.QuoteMeta(prefix)
		if n := len(out) - 1; n >= 0 && len(out[n])+1+len(prefix)+len(end) <= maxPattern {
			out[n] += "|" + prefix
			continue
		}
		out = append(out, start+prefix)
	}
	for i := range out {
		out[i] += end
	}
	return out
}

// settingPrefixes are the first segments of paths with bodies of settings only.
func settingPrefixes() []string {
	out := administrationPrefixes()
	for _, r := range placement.Table() {
		if r.Place != placement.Buffered || slices.Contains(wordy, r.Family) {
			out = slices.DeleteFunc(out, func(first string) bool { return first == strings.Split(r.Path[1:], "/")[0] })
		}
	}
	return out
}

// administrationPrefixes are the first segments of the administration's paths.
func administrationPrefixes() []string {
	var out []string
	for _, r := range placement.Table() {
		if first := strings.Split(r.Path[1:], "/")[0]; r.Place == placement.Buffered && !slices.Contains(out, first) {
			out = append(out, first)
		}
	}
	slices.Sort(out)
	return out
}
