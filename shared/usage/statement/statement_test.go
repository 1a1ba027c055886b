package statement

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/fault"
)

// lineText writes a line in short.
func lineText(l Line) string {
	show := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	cost := "-"
	if l.Cost != nil {
		cost = fmt.Sprint(int64(*l.Cost))
	}
	return fmt.Sprintf("%s %s %q requests %s in %s cached %s out %s cost %s", l.Start.Format("01-02T15"), l.End.Format("01-02T15"), l.Model, show(l.Requests), show(l.Input), show(l.Cached), show(l.Output), cost)
}

var exports = []struct {
	name, format, export string
	want                 []string
}{
	{"OpenAI's usage", "openai", `{"object":"page","has_more":false,"next_page":null,"data":[{"object":"bucket","start_time":1793491200,"end_time":1793577600,"results":[
		{"object":"organization.usage.completions.result","input_tokens":1000,"input_cached_tokens":400,"output_tokens":50,"num_model_requests":5,"model":"gpt-4o-2024-08-06","project_id":"p1","batch":false},
		{"object":"organization.usage.completions.result","input_tokens":10,"input_cached_tokens":0,"output_tokens":5,"num_model_requests":1,"model":"gpt-4o-2024-08-06","project_id":"p2","batch":false},
		{"object":"organization.usage.completions.result","input_tokens":7,"input_cached_tokens":0,"output_tokens":3,"num_model_requests":1,"model":null}]}]}`,
		[]string{`11-01T00 11-02T00 "" requests 1 in 7 cached 0 out 3 cost -`, `11-01T00 11-02T00 "gpt-4o-2024-08-06" requests 6 in 1010 cached 400 out 55 cost -`}},
	{"OpenAI's costs", "openai", `{"object":"page","has_more":false,"data":[{"object":"bucket","start_time":1793491200,"end_time":1793577600,"results":[{"object":"organization.costs.result","amount":{"value":0.06,"currency":"usd"},"line_item":"a"},{"object":"organization.costs.result","amount":{"value":-0.01,"currency":"usd"},"line_item":"credit"}]}]}`,
		[]string{`11-01T00 11-02T00 "" requests - in - cached - out - cost 50000000`}},
	{"Anthropic's usage", "anthropic", `{"data":[{"starting_at":"2026-11-01T00:00:00Z","ending_at":"2026-11-02T00:00:00Z","results":[{"uncached_input_tokens":100,"cache_creation":{"ephemeral_1h_input_tokens":10,"ephemeral_5m_input_tokens":20},"cache_read_input_tokens":300,"output_tokens":40,"model":"claude-sonnet-4-5","service_tier":"standard"}]}],"has_more":false,"next_page":null}`,
		[]string{`11-01T00 11-02T00 "claude-sonnet-4-5" requests - in 430 cached 300 out 40 cost -`}},
	{"Anthropic's costs", "anthropic", `{"data":[{"starting_at":"2026-11-01T00:00:00Z","ending_at":"2026-11-02T00:00:00Z","results":[{"amount":"123.45","currency":"USD","model":"claude-sonnet-4-5"}]}],"has_more":false}`,
		[]string{`11-01T00 11-02T00 "claude-sonnet-4-5" requests - in - cached - out - cost 1234500000`}},
	{"AWS, the older report", "aws", "lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/ProductCode,lineItem/UsageType,lineItem/UsageAmount,lineItem/UnblendedCost,lineItem/CurrencyCode,pricing/unit,product/model\n" +
		"2026-11-01T00:00:00Z,2026-11-01T01:00:00Z,AmazonBedrock,USE1-Claude-input-tokens,1.5,0.0045,USD,1K tokens,Claude Sonnet\n" +
		"2026-11-01T00:00:00Z,2026-11-01T01:00:00Z,AmazonBedrock,USE1-Claude-output-tokens,0.2,0.003,USD,1K tokens,Claude Sonnet\n" +
		"2026-11-01T00:00:00Z,2026-11-01T01:00:00Z,AmazonS3,Storage,1,9.99,USD,GB,\n",
		[]string{`11-01T00 11-01T01 "Claude Sonnet" requests - in 1500 cached - out 200 cost 7500000`}},
	{"AWS, the newer report", "aws", "line_item_usage_start_date,line_item_product_code,line_item_usage_type,line_item_usage_amount,line_item_unblended_cost,pricing_unit\n2026-11-01 00:00:00,AmazonBedrock,USE1-x-cache-read-input-token-count,300,0.1,tokens\n",
		[]string{`11-01T00 11-01T01 "" requests - in 300 cached 300 out - cost 100000000`}},
	{"a table", "csv", "\ufeffDate,Model,Requests,Input Tokens,Output_tokens,cost_usd\n2026-11-01,gpt-4o,3,100,20,0.5\n2026-11-01,gpt-4o,1,,,0.25\n",
		[]string{`11-01T00 11-02T00 "gpt-4o" requests 4 in 100 cached - out 20 cost 750000000`}},
	{"a table of hours", "csv", "start,end,cost_usd\n2026-11-01T10:00:00Z,2026-11-01T11:00:00Z,1\n", []string{`11-01T10 11-01T11 "" requests - in - cached - out - cost 1000000000`}},
}

func TestExportsAreRead(t *testing.T) {
	t.Parallel()
	for _, x := range exports {
		lines, err := Read(x.format, []byte(x.export))
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		var got []string
		for _, l := range lines {
			got = append(got, lineText(l))
		}
		if strings.Join(got, "\n") != strings.Join(x.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", x.name, strings.Join(got, "\n"), strings.Join(x.want, "\n"))
		}
	}
}

func TestOtherExportsAreRefused(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ format, export, message string }{
		{"openai", ``, "JSON"},
		{"openai", `[]`, "must be"},
		{"openai", `{"data":[]}`, "no lines"},
		{"openai", `{"data":[{"start_time":5,"end_time":5,"results":[{}]}]}`, "ends before"},
		{"openai", `{"data":[{"start_time":5,"end_time":9,"results":[{"input_tokens":-1}]}]}`, "input tokens"},
		{"openai", `{"data":[{"start_time":5,"end_time":9,"results":[{"input_tokens":9223372036854775807}]}]}`, "input tokens"},
		{"openai", `{"data":[{"start_time":5,"end_time":9,"results":[{"input_tokens":"many"}]}]}`, "input_tokens"},
		{"openai", `{"data":[{"start_time":5,"end_time":9,"results":[{"amount":{"value":1,"currency":"eur"}}]}]}`, "USD"},
		{"openai", `{"data":[{"start_time":5,"end_time":9,"results":[{}]}],"has_more":true}`, "has_more"},
		{"openai", `{"data":[{"start_time":0,"end_time":99999999,"results":[{}]}]}`, "92 days"},
		{"anthropic", `{"data":[{"starting_at":"x"}]}`, ""},
		{"anthropic", `{"data":[{"starting_at":"2026-11-01T00:00:00Z","ending_at":"2026-11-02T00:00:00Z","results":[{"amount":"much"}]}]}`, "dollars"},
		{"aws", "a,b\n1,2\n", "line_item_usage_start_date"},
		{"aws", "line_item_usage_start_date,line_item_unblended_cost\nnever,1\n", "line 2"},
		{"csv", "", "table"},
		{"csv", "model,cost\nx,1\n", "start or date"},
		{"csv", "date,cost_usd\n2026-11-01,NaN\n", "line 2"},
		{"csv", "date,requests\n2026-11-01,-4\n", "line 2"},
		{"csv", "date,requests\n2026-11-01,1.5\n", "line 2: requests must be a whole number"},
		{"csv", "date,input_tokens\n2026-11-01,0.2\n", "whole number"},
		{"csv", "date,cached_tokens\n2026-11-01,1e-3\n", "whole number"},
		{"csv", "date,output_tokens\n2026-11-01,7.25\n", "whole number"},
		{"aws", "line_item_usage_start_date,line_item_unblended_cost,line_item_usage_amount,pricing_unit\n2026-11-01T00:00:00Z,1,1.5,Tokens\n", "line_item_usage_amount must be a whole number"},
		{"aws", "line_item_usage_start_date,line_item_unblended_cost,line_item_usage_amount,pricing_unit\n2026-11-01T00:00:00Z,1,-1,1K tokens\n", "line_item_usage_amount"},
		{"csv", "date,requests\n2026-11-01\n", "table"},
		{"csv", "date,requests\nyesterday,4\n", "line 2"},
		{"pdf", "x", "must be one of"},
	} {
		lines, err := Read(x.format, []byte(x.export))
		if f := fault.From(err); err == nil || f.Status() != 400 || !strings.Contains(f.Message, x.message) {
			t.Errorf("%s %q: %v, %v", x.format, x.export, lines, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, x := range exports {
		f.Add(x.format, []byte(x.export))
	}
	f.Fuzz(func(t *testing.T, format string, raw []byte) {
		lines, err := Read(format, raw)
		if err != nil && fault.From(err).Status() != 400 {
			t.Errorf("%v", err)
		}
		for _, l := range lines {
			if !l.Start.Before(l.End) || l.Requests != nil && *l.Requests < 0 {
				t.Errorf("%+v", l)
			}
		}
	})
}
