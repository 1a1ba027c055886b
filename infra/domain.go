package main

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscertificatemanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfront"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// firewallRegion is the only region where firewalls for CloudFront exist.
const firewallRegion = "us-east-1"

// newFirewallStack makes the edge's firewall in its own stack, for installations in other
// regions. The edge's stack stays in the installation's region, because the origin secret
// can only be looked up there.
func newFirewallStack(scope constructs.Construct, props *awscdk.StackProps, o options) (stack awscdk.Stack, acl *string) {
	props.Env.Region, props.CrossRegionReferences = jsii.String(firewallRegion), jsii.Bool(true)
	stack = awscdk.NewStack(scope, jsii.String("Firewall"), props)
	return stack, newFirewall(stack, "Firewall", o).AttrArn()
}

// withoutEdgeLogs are regions where CloudFront cannot write standard logs to a bucket.
var withoutEdgeLogs = []string{
	"af-south-1", "ap-east-1", "ap-south-2", "ap-southeast-3", "ap-southeast-4", "ca-west-1", "eu-south-1", "eu-south-2", "eu-central-2", "il-central-1", "me-south-1", "me-central-1",
}

// named gives a distribution its host name and its log, where there are such.
func (e *edgeStack) named(o options, d *dataStack, p *awscloudfront.DistributionProps) *awscloudfront.DistributionProps {
	if o.domain != "" {
		p.DomainNames = jsii.Strings(o.domain)
		p.Certificate = awscertificatemanager.Certificate_FromCertificateArn(e.stack, jsii.String("Certificate"), jsii.String(o.certificate))
	}
	if !slices.Contains(withoutEdgeLogs, o.region) {
		p.EnableLogging, p.LogBucket, p.LogFilePrefix = jsii.Bool(true), d.accessLogs, jsii.String("edge/")
	}
	return p
}

// address puts out where the gateway is.
func (e *edgeStack) address(o options) {
	named := ""
	if o.address() == "" {
		named = ". For sign-in, OAuth of MCP, SCIM and links in mails deploy again with it as publicUrl"
	}
	host := *e.distribution.DistributionDomainName()
	if o.domain != "" {
		awscdk.NewCfnOutput(e.stack, jsii.String("Target"), &awscdk.CfnOutputProps{
			Value: jsii.String(host), Description: jsii.String("What the DNS record of " + o.domain + " must lead to (CNAME or alias)"),
		})
		host = o.domain
	}
	awscdk.NewCfnOutput(e.stack, jsii.String("Address"), &awscdk.CfnOutputProps{
		Value: jsii.String("https://" + host + "/v1"), Description: jsii.String("Base URL of the gateway" + named),
	})
	awscdk.NewCfnOutput(e.stack, jsii.String("ConsoleAddress"), &awscdk.CfnOutputProps{
		Value: jsii.String("https://" + host + "/console/"), Description: jsii.String("Web console"),
	})
}
