package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"
)

// TestNagFindsWhatNoExemptionIsFor adds resources to an installation that the pack objects
// to, also at resources that another exemption from the same rule covers.
func TestNagFindsWhatNoExemptionIsFor(t *testing.T) {
	context := map[string]any{"dist": fakeDist(t), "container": "on"}
	app := awscdk.NewApp(&awscdk.AppProps{Context: &context, Outdir: jsii.String(t.TempDir()), AnalyticsReporting: jsii.Bool(false)})
	o, err := optionsOf(app)
	if err != nil {
		t.Fatal(err)
	}
	in := build(app, o)
	for i, n := range in.exempt {
		if n == 0 {
			t.Errorf("nothing is at %s any more", exemptions[i].at)
		}
		if len(exemptions[i].reason) < 20 {
			t.Errorf("%s has no reason", exemptions[i].at)
		}
	}
	allow := func(action string, resource *string) awsiam.PolicyStatement {
		return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: jsii.Strings(action), Resources: &[]*string{resource}})
	}
	in.functions.functions["chat"].AddToRolePolicy(allow("s3:GetObject", in.data.bucket.ArnForObjects(jsii.String("*"))))
	in.functions.functions["configs"].AddToRolePolicy(allow("dynamodb:*", in.data.tables["control"].TableArn()))
	in.workers.functions["usage"].AddToRolePolicy(allow("sqs:SendMessage", jsii.String("*")))
	awss3.NewBucket(in.data.stack, jsii.String("Open"), nil)
	found := ""
	for _, stack := range []awscdk.Stack{in.data.stack, in.functions.stack, in.workers.stack} {
		for _, m := range *assertions.Annotations_FromStack(stack).FindError(jsii.String("*"), assertions.Match_StringLikeRegexp(jsii.String("AwsSolutions-.*"))) {
			found += fmt.Sprintf("%s %.120v\n", *m.Id, m.Entry.Data)
		}
	}
	for _, want := range []string{"/Functions/Role-chat/DefaultPolicy/Resource AwsSolutions-IAM5", "/Functions/Role-configs/DefaultPolicy/Resource AwsSolutions-IAM5", "/Workers/Role-usage/DefaultPolicy/Resource AwsSolutions-IAM5", "/Data/Open/Resource AwsSolutions-S"} {
		if !strings.Contains(found, want) {
			t.Errorf("not found: %s\nfound:\n%s", want, found)
		}
	}
	for line := range strings.Lines(found) {
		if strings.Contains(line, "IAM5") && !strings.Contains(line, "Role-chat/") && !strings.Contains(line, "Role-configs/") && !strings.Contains(line, "Role-usage/") {
			t.Errorf("found beside them: %s", line)
		}
	}
}
