package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsssm"
	"github.com/aws/jsii-runtime-go"
)

// The edge adds the origin secret to the requests it sends; functions and the container
// refuse every request without it. The worker that replaces the secret finds the
// distribution by a parameter, since the edge's stack is made after all others. It may
// change only a distribution that carries the installation's tag.

// installationTag marks what belongs to an installation: for its budget, and for the worker
// that may change its distribution.
const installationTag = "gateway-installation"

// distributionParameter names the parameter with the id of the distribution.
func distributionParameter(o options) string { return "/" + o.name + "/distribution" }

// known writes the parameter by which the worker finds the distribution.
func (e *edgeStack) known(o options) {
	awsssm.NewStringParameter(e.stack, jsii.String("DistributionId"), &awsssm.StringParameterProps{
		ParameterName: jsii.String(distributionParameter(o)), StringValue: e.distribution.DistributionId(),
		Description: jsii.String("The distribution that sends the origin secret"),
	})
}

// rotationEnvironment is what a worker that replaces the secret must know.
func (d *dataStack) rotationEnvironment(o options) map[string]*string {
	return map[string]*string{
		"GATEWAY_ORIGIN_SECRET_ID":       d.originSecret.SecretArn(),
		"GATEWAY_DISTRIBUTION_PARAMETER": jsii.String(distributionParameter(o)),
	}
}

// grantRotation lets a worker replace the secret.
func (d *dataStack) grantRotation(o options, to awslambda.Function) {
	arn := func(service, region, resource, name string) *string {
		return d.stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String(service), Region: jsii.String(region), Resource: jsii.String(resource), ResourceName: jsii.String(name)})
	}
	to.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: jsii.Strings("secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"), Resources: &[]*string{d.originSecret.SecretArn()},
	}))
	to.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: jsii.Strings("ssm:GetParameter"), Resources: &[]*string{arn("ssm", o.region, "parameter", distributionParameter(o)[1:])},
	}))
	to.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions:    jsii.Strings("cloudfront:GetDistribution", "cloudfront:GetDistributionConfig", "cloudfront:UpdateDistribution"),
		Resources:  &[]*string{arn("cloudfront", "", "distribution", "*")},
		Conditions: &map[string]any{"StringEquals": map[string]any{"aws:ResourceTag/" + installationTag: o.name}},
	}))
	// An update also names the firewall and the bucket of the logs, and CloudFront checks
	// that its caller may use them.
	if o.firewall == "on" {
		to.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions: jsii.Strings("wafv2:GetWebACL"), Resources: &[]*string{arn("wafv2", firewallRegion, "global/webacl", firewallName(o)+"/*")},
		}))
	}
	if d.accessLogs != nil {
		to.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions: jsii.Strings("s3:GetBucketAcl", "s3:PutBucketAcl"), Resources: &[]*string{d.accessLogs.BucketArn()},
		}))
	}
}
