package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// options are the context values of the app.
type options struct {
	name      string  // of the installation; before the names of its resources
	region    string  // WAF for CloudFront exists in us-east-1 only, so the default is there
	chat      string  // where chat, messages, embeddings and models run: lambda or container
	firewall  string  // on or off
	container string  // on: one task; ha: two in two zones with a NAT gateway each; off
	dist      string  // folder of what scripts/lambdas.sh built
	dashboard string  // on or off
	budget    float64 // USD a month that the installation is meant to cost at most; 0: not said
	alarms    string  // ARN of a topic that alarms are sent to; empty: none
	// Days that logged bodies and usage records are kept; empty: the standard.
	bodyDays, recordDays string
	vectorBucket         string // S3 vector bucket of the semantic cache; empty: vectors stand in the tables
}

func optionsOf(app awscdk.App) (options, error) {
	get := func(name, otherwise string) string {
		if v, ok := app.Node().TryGetContext(jsii.String(name)).(string); ok && v != "" {
			return v
		}
		return otherwise
	}
	o := options{
		name: get("name", "gateway"), region: get("region", "us-east-1"), chat: get("chat", "lambda"),
		container: get("container", "on"), firewall: get("firewall", "on"), dist: get("dist", "dist"), alarms: get("alarmTopicArn", ""),
		bodyDays: get("bodyRetentionDays", ""), recordDays: get("recordRetentionDays", ""), vectorBucket: get("vectorBucket", ""),
	}
	o.dashboard = get("dashboard", "on")
	if text := get("monthlyBudget", "0"); text != "0" {
		var err error
		if o.budget, err = strconv.ParseFloat(text, 64); err != nil || !(o.budget >= 1 && o.budget <= 1e9) {
			return o, fmt.Errorf("context monthlyBudget=%s: must be a number of USD, 1 to 1000000000, or 0 for none", text)
		}
	}
	return o, o.check()
}

func (o *options) check() error {
	switch {
	case !slices.Contains([]string{"lambda", "container"}, o.chat):
		return fmt.Errorf("context chat=%s: must be lambda or container", o.chat)
	case !slices.Contains([]string{"on", "ha", "off"}, o.container):
		return fmt.Errorf("context container=%s: must be on, ha or off", o.container)
	case !slices.Contains([]string{"on", "off"}, o.firewall):
		return fmt.Errorf("context firewall=%s: must be on or off", o.firewall)
	case !slices.Contains([]string{"on", "off"}, o.dashboard):
		return fmt.Errorf("context dashboard=%s: must be on or off", o.dashboard)
	case o.chat == "container" && o.container == "off":
		return fmt.Errorf("context chat=container needs container=on or ha")
	case o.region != "us-east-1":
		return fmt.Errorf("context region=%s: the edge's firewall exists in us-east-1 only", o.region)
	}
	if _, err := os.Stat(filepath.Join(o.dist, "chat", "bootstrap")); err != nil {
		return fmt.Errorf("%s holds no functions; run scripts/lambdas.sh", o.dist)
	}
	return nil
}

func (o *options) hasContainer() bool { return o.container != "off" }
