package main

import (
	"os"
	"strings"
	"testing"
)

// fine are values that are allowed, and wrong ones that are not, by name.
var fine = map[string][]any{
	"name": {"ai", "gateway-2"}, "region": {"eu-west-1", "us-east-1", "ap-southeast-4"}, "chat": {"lambda"}, "container": {"on", "ha", "off"},
	"firewall": {"on", "off"}, "requestsPerAddress": {"0", "10", "2000000000", 20000.0}, "dashboard": {"on", "off"}, "modelMetrics": {"on", "off"}, "monthlyBudget": {"0", "1", "2.5", 250.0}, "usageWindow": {"0", "300", 5.0}, "queryLimit": {"off", "1", 250.0}, "queryHourlyLimit": {"0", "1", "1000000", 250.0}, "dist": {}, "alarmTopicArn": {"arn:aws:sns:us-east-1:123456789012:alarms"},
	"bodyRetentionDays": {"0", "90", 90.0}, "recordRetentionDays": {"0", "36500", 400.0}, "vectorBucket": {"vectors-1"}, "mailFrom": {}, "mailIdentity": {}, "publicUrl": {"https://gateway.example.com/v1"}, "pricesUrl": {"https://prices.example.com/sheet.txt"}, "vectorDimensions": {"1536", 1536.0, "1, 4096"},
	"egressAllow": {"10.0.0.0/8", "10.1.2.3, models.internal:8443"}, "trustedCustomHosts": {"models.internal", "*.lab.example.com,10.0.0.1"},
	"headerAliases": {"x-acme", "x-acme, x-other"}, "allowedOrigins": {"https://app.example.com"}, "mcpAllowedOrigins": {"https://app.example.com", "https://a.example.com, http://localhost:6274"}, "blockInlineConfig": {"true", "false", true, false}, "logLevel": {"debug", "info", "warn", "error"},
	"awsServiceRole":      {"off", "bedrock", "arn:aws:iam::123456789012:role/a/b", "bedrock, arn:aws:iam::123456789012:role/models"},
	"reservedConcurrency": {"usage=5", "administration=10,analytics=2", "workers=1,repair=3"},
	"shift":               {"canary", "linear", "off"}, "deletionProtection": {"on", "off"}, "tablePrefix": {"gateway-", "a_b-"},
	"formerKeyArns": {"arn:aws:kms:us-east-1:123456789012:key/0f1c1a52-7f0e-4f8f-9c39-3f4f0a9e2b11", formerKeys},
	"domain":        {}, "certificateArn": {}, // together, below
}

// formerKeys are two keys that sealed before.
const formerKeys = "arn:aws:kms:us-east-1:123456789012:key/0f1c1a52-7f0e-4f8f-9c39-3f4f0a9e2b11,arn:aws:kms:us-east-1:123456789012:key/mrk-1234abcd"

var wrong = map[string][]any{
	"name":   {"Gateway", "g", "1gateway", "gateway-", "a b", strings.Repeat("a", 31), "gate/way", []any{"gateway"}},
	"region": {"eu-west-9", "europe", "us-east-1a", "cn-north-1", "us-gov-west-1", "US-EAST-1"}, "chat": {"both", true}, "container": {"maybe", "ON", true},
	"firewall": {"yes"}, "requestsPerAddress": {"-1", "9", "2000000001", "many", "1.5"}, "dashboard": {"yes"}, "modelMetrics": {"true"}, "usageWindow": {"-1", "301", "soon", "1.5"}, "queryLimit": {"0", "100001", "on", "1.5"}, "queryHourlyLimit": {"-1", "1000001", "off", "1.5"}, "monthlyBudget": {"-1", "a lot", "0.5", "NaN", "1e12", "inf"}, "dist": {}, "alarmTopicArn": {"alarms", "arn:aws:sns:us-east-1:1:alarms", "arn:aws:sqs:us-east-1:123456789012:alarms"},
	"bodyRetentionDays": {"-1", "ninety", "1.5", 1.5, "36501"}, "recordRetentionDays": {"-1", "x", "36501"}, "vectorBucket": {"Vectors", "v", "a.b"}, "mailFrom": {"gateway", "a b@c.d"}, "mailIdentity": {"example.com", "arn:aws:ses:eu-west-1:123456789012:identity/*"}, "pricesUrl": {"http://prices.example.com/sheet.txt", "prices.txt"}, "publicUrl": {"http://gateway.example.com/v1", "https://gateway.example.com"}, "vectorDimensions": {"many", "0", "4097", "-1", "1.5", "1,,2", "1,1", "1,2,3,4,5,6"},
	"egressAllow": {"10.0.0.0/40", "https://models.internal", strings.Repeat("10.0.0.0/8,", 100)}, "trustedCustomHosts": {"https://a", "*", strings.Repeat("a.internal,", 100)},
	"allowedOrigins":    {"*", "https://app.example.com/"},
	"mcpAllowedOrigins": {"app.example.com", "https://app.example.com/", "*", strings.Repeat("https://app.example.com,", 100)},
	"headerAliases":     {"X-Acme", "x-acme-", "x-amz", "x-a,x-a-b", strings.Repeat("x-acme,", 200)}, "blockInlineConfig": {"yes", "1", 1.0}, "logLevel": {"trace", "INFO"},
	"awsServiceRole":      {"on", "true", "bedrock,s3", "arn:aws:iam::123456789012:user/a", "arn:aws:iam::12:role/a"},
	"reservedConcurrency": {"5", "usage", "usage=0", "usage=-1", "usage=x", "nobody=5", "usage=5,", "usage=10001"},
	"shift":               {"on", "canary10"}, "deletionProtection": {"true"}, "tablePrefix": {"Gateway-", "gateway", strings.Repeat("a", 40) + "-"},
	"domain":         {"https://gateway.example.com", "gateway", "gateway.example.com/v1", "*.example.com"},
	"certificateArn": {"arn:aws:acm:eu-west-1:123456789012:certificate/1", "certificate/1"},
	"formerKeyArns":  {"alias/gateway-seal", "0f1c1a52-7f0e-4f8f-9c39-3f4f0a9e2b11", formerKeys + ",", strings.Repeat(formerKeys+",", 9) + formerKeys},
}

func TestContextIsChecked(t *testing.T) {
	dist := fakeDist(t)
	for _, c := range contextValues {
		if _, ok := fine[c.name]; !ok {
			t.Errorf("%s is not tried", c.name)
		}
		for _, v := range fine[c.name] {
			if _, err := parseContext(map[string]any{"dist": dist, c.name: v}); err != nil {
				t.Errorf("%s=%v is allowed: %v", c.name, v, err)
			}
		}
		for _, v := range wrong[c.name] {
			_, err := parseContext(map[string]any{"dist": dist, c.name: v})
			if err == nil || !strings.HasPrefix(err.Error(), "context "+c.name+"=") || !strings.Contains(err.Error(), "must be "+c.allowed) || len(err.Error()) > 500 {
				t.Errorf("%s=%v: %v", c.name, v, err)
			}
		}
	}
	if len(wrong) != len(contextValues) || len(fine) != len(contextValues) {
		t.Error("a value is tried that does not exist")
	}
}

func TestContextIsCheckedTogether(t *testing.T) {
	dist := fakeDist(t)
	_, err := parseContext(map[string]any{"dist": dist, "chat": "both", "container": "maybe", "contaner": "off", "region": "moon", "@aws-cdk/core:x": true, "cli-telemetry": false, "availability-zones:account=1": []any{}})
	if err == nil {
		t.Fatal("nothing was said")
	}
	for _, want := range []string{"context chat=both: must be lambda or container", "context container=maybe", "context region=moon", "context contaner: there is no such value; there are alarmTopicArn,"} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("%q is not said once: %v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n"); n != 3 {
		t.Errorf("%d lines: %v", n+1, err)
	}
	const mailIdentity = "arn:aws:ses:us-east-1:123456789012:identity/example.com"
	const certificate = "arn:aws:acm:us-east-1:123456789012:certificate/1"
	for name, c := range map[string]struct {
		context map[string]any
		says    string // "": it is allowed
	}{
		"chat needs a container":      {map[string]any{"chat": "container"}, "needs container=on or ha"},
		"chat with one":               {map[string]any{"chat": "container", "container": "ha"}, ""},
		"a sender alone":              {map[string]any{"mailFrom": "gateway@example.com", "publicUrl": "https://gateway.example.com/v1"}, "set both or neither"},
		"a sender without an address": {map[string]any{"mailFrom": "gateway@example.com", "mailIdentity": mailIdentity}, "publicUrl or domain"},
		"a sender":                    {map[string]any{"mailFrom": "gateway@example.com", "mailIdentity": mailIdentity, "publicUrl": "https://gateway.example.com/v1"}, ""},
		"domain alone":                {map[string]any{"domain": "gateway.example.com"}, "set both or neither"},
		"certificate alone":           {map[string]any{"certificateArn": certificate}, "set both or neither"},
		"domain and certificate":      {map[string]any{"domain": "gateway.example.com", "certificateArn": certificate}, ""},
		"alarms elsewhere":            {map[string]any{"region": "eu-west-1", "alarmTopicArn": "arn:aws:sns:us-east-1:123456789012:alarms"}, "the topic must be in eu-west-1"},
		"alarms in the region":        {map[string]any{"region": "eu-west-1", "alarmTopicArn": "arn:aws:sns:eu-west-1:123456789012:alarms"}, ""},
		"a former key elsewhere":      {map[string]any{"region": "eu-west-1", "formerKeyArns": formerKeys}, "the key must be in eu-west-1"},
		"bodies longer than records":  {map[string]any{"bodyRetentionDays": "90", "recordRetentionDays": "30"}, "at most recordRetentionDays=30"},
		"bodies for ever":             {map[string]any{"bodyRetentionDays": "0", "recordRetentionDays": "30"}, "at most recordRetentionDays=30"},
		"everything for ever":         {map[string]any{"bodyRetentionDays": "0", "recordRetentionDays": "0"}, ""},
		"no functions":                {map[string]any{"dist": t.TempDir()}, "run scripts/lambdas.sh"},
		"no functions and no contain": {map[string]any{"dist": t.TempDir(), "chat": "container"}, "needs container=on or ha"},
	} {
		if _, ok := c.context["dist"]; !ok {
			c.context["dist"] = dist
		}
		_, err := parseContext(c.context)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEveryContextValueIsInTheGuide keeps the table of the guide complete.
func TestEveryContextValueIsInTheGuide(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../functions/docs/guides/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	var names string // first cells of the rows of tables
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "| "); ok {
			cell, _, _ := strings.Cut(rest, " |")
			names += cell + "\n"
		}
	}
	for _, c := range contextValues {
		if c.name != "dist" && !strings.Contains(names, "`"+c.name+"`") {
			t.Errorf("%s has no row", c.name)
		}
	}
}
