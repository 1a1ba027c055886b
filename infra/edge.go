package main

import (
	_ "embed"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscertificatemanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfront"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfrontorigins"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3deployment"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"gateway/functions/console/headers"
)

// edgeStack is the one address that clients know.
type edgeStack struct {
	stack        awscdk.Stack
	distribution awscloudfront.Distribution
}

// newEdgeStack makes the edge and, where the firewall needs its own stack, that stack too.
// props gives the properties of a stack by its name.
func newEdgeStack(scope constructs.Construct, props func(string) *awscdk.StackProps, o options, d *dataStack, f *functionStack) (e *edgeStack, firewall awscdk.Stack) {
	own := props("edge")
	e = &edgeStack{}
	var acl *string // nil: no firewall
	switch {
	case o.firewall != "on":
		e.stack = awscdk.NewStack(scope, jsii.String("Edge"), own)
	case o.region == firewallRegion:
		e.stack = awscdk.NewStack(scope, jsii.String("Edge"), own)
		acl = newFirewall(e.stack, "Firewall", o).AttrArn()
	default:
		own.CrossRegionReferences = jsii.Bool(true)
		e.stack = awscdk.NewStack(scope, jsii.String("Edge"), own)
		firewall, acl = newFirewallStack(scope, props("firewall"), o)
	}
	function := awscloudfront.NewFunction(e.stack, jsii.String("Router"), &awscloudfront.FunctionProps{
		Code: awscloudfront.FunctionCode_FromInline(jsii.String(router(o))), Runtime: awscloudfront.FunctionRuntime_JS_2_0(),
		Comment: jsii.String("Chooses between the API and the container"),
	})
	// It replaces a header of the same name that a client sends.
	secret := &map[string]*string{
		"X-Gateway-Origin-Secret": d.originSecret.SecretValueFromJson(jsii.String("current")).UnsafeUnwrap(),
	}
	api := awscloudfrontorigins.NewRestApiOrigin(f.api, &awscloudfrontorigins.RestApiOriginProps{
		OriginId: jsii.String("api"), OriginPath: jsii.String(""), CustomHeaders: secret,
		ReadTimeout: awscdk.Duration_Seconds(jsii.Number(120)), ResponseCompletionTimeout: awscdk.Duration_Minutes(jsii.Number(15)),
	})
	direct := func(origin awscloudfront.IOrigin, policy awscloudfront.IOriginRequestPolicy) *awscloudfront.BehaviorOptions {
		return &awscloudfront.BehaviorOptions{
			Origin: origin, OriginRequestPolicy: policy, CachePolicy: awscloudfront.CachePolicy_CACHING_DISABLED(),
			AllowedMethods: awscloudfront.AllowedMethods_ALLOW_ALL(), Compress: jsii.Bool(false), // compressing would delay streams
			ViewerProtocolPolicy: awscloudfront.ViewerProtocolPolicy_HTTPS_ONLY,
		}
	}
	behaviour := func(origin awscloudfront.IOrigin, policy awscloudfront.IOriginRequestPolicy) *awscloudfront.BehaviorOptions {
		b := direct(origin, policy)
		b.FunctionAssociations = &[]*awscloudfront.FunctionAssociation{{EventType: awscloudfront.FunctionEventType_VIEWER_REQUEST, Function: function}}
		return b
	}
	toAPI := awscloudfront.OriginRequestPolicy_ALL_VIEWER_EXCEPT_HOST_HEADER()
	whole := behaviour(api, toAPI)
	more := map[string]*awscloudfront.BehaviorOptions{}
	if f.container == nil {
		// The function need not choose here, and it costs money for each request, so it runs
		// only for paths that it renames: those of version 2, of descriptions at the root, of
		// clients that send the version twice or not at all, and of Azure's.
		whole = direct(api, toAPI)
		more["/v2"], more["/v2/*"] = behaviour(api, toAPI), behaviour(api, toAPI)
		more["/.well-known/*"] = behaviour(api, toAPI)
		more["/v1/v1/*"], more["/v1/openai/*"] = behaviour(api, toAPI), behaviour(api, toAPI)
		more["/v1/mcp/*"] = behaviour(api, toAPI) // metadata that directs MCP clients to the authorization server
		for _, first := range versionless {
			more["/"+first+"*"] = behaviour(api, toAPI)
		}
	}
	if c := f.container; c != nil {
		origin := awscloudfrontorigins.VpcOrigin_WithApplicationLoadBalancer(c.balancer, &awscloudfrontorigins.VpcOriginWithEndpointProps{
			OriginId: jsii.String("container"), ProtocolPolicy: awscloudfront.OriginProtocolPolicy_HTTP_ONLY, CustomHeaders: secret,
			ReadTimeout: awscdk.Duration_Seconds(jsii.Number(120)),
		})
		// WebSockets need their own behavior; a behavior also makes the origin known, so that
		// the function can choose it.
		for _, sessions := range []string{"/v1/realtime*", "/v1/live/*", "/v1/ws/*"} {
			more[sessions] = behaviour(origin, awscloudfront.OriginRequestPolicy_ALL_VIEWER())
		}
	}
	e.console(d, more)
	e.distribution = awscloudfront.NewDistribution(e.stack, jsii.String("Distribution"), e.named(o, d, &awscloudfront.DistributionProps{
		DefaultBehavior: whole, AdditionalBehaviors: &more, WebAclId: acl, HttpVersion: awscloudfront.HttpVersion_HTTP2_AND_3,
		MinimumProtocolVersion: awscloudfront.SecurityPolicyProtocol_TLS_V1_2_2021,
		Comment:                jsii.String(o.name), ErrorResponses: unkept(),
	}))
	e.known(o)
	e.address(o)
	return e, firewall
}

// unkept disables caching of error statuses. By default CloudFront caches them for ten seconds
// for every client that requests the path, regardless of the response headers.
func unkept() *[]*awscloudfront.ErrorResponse {
	var out []*awscloudfront.ErrorResponse
	for _, status := range []float64{400, 403, 404, 405, 414, 416, 500, 501, 502, 503, 504} {
		out = append(out, &awscloudfront.ErrorResponse{HttpStatus: jsii.Number(status), Ttl: awscdk.Duration_Seconds(jsii.Number(0))})
	}
	return &out
}

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

//go:embed edge/console.js
var consolePages string

// consoleFiles is the folder of the console's files, from the folder of this module.
const consoleFiles = "../functions/console/dist"

// console adds the web console: its files in a bucket, behind the distribution at /console/. They
// have the same content and headers as in the other hosts.
func (e *edgeStack) console(d *dataStack, behaviors map[string]*awscloudfront.BehaviorOptions) {
	bucket := awss3.NewBucket(e.stack, jsii.String("Console"), &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(), EnforceSSL: jsii.Bool(true), Encryption: awss3.BucketEncryption_S3_MANAGED,
		ServerAccessLogsBucket: d.accessLogs, ServerAccessLogsPrefix: jsii.String("console/"),
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY, // the deployments below empty it first
	})
	files := func(name, folder, cache string, exclude ...string) awss3deployment.BucketDeployment {
		return awss3deployment.NewBucketDeployment(e.stack, jsii.String(name), &awss3deployment.BucketDeploymentProps{
			Sources: &[]awss3deployment.ISource{awss3deployment.Source_Asset(jsii.String(consoleFiles+folder), &awss3assets.AssetOptions{
				Exclude: jsii.Strings(append(exclude, "*.gz")...), // CloudFront compresses
			})},
			DestinationBucket: bucket, DestinationKeyPrefix: jsii.String("console" + folder),
			CacheControl: &[]awss3deployment.CacheControl{awss3deployment.CacheControl_FromString(jsii.String(cache))},
			// Open pages may still load the assets of the release before.
			Prune: jsii.Bool(false), RetainOnDelete: jsii.Bool(false),
		})
	}
	assets := files("ConsoleAssets", "/assets", headers.CacheAssets)
	files("ConsoleIndex", "", headers.CacheIndex, "assets").Node().AddDependency(assets) // the index names assets

	response := awscloudfront.NewResponseHeadersPolicy(e.stack, jsii.String("ConsoleHeaders"), &awscloudfront.ResponseHeadersPolicyProps{
		Comment: jsii.String("Security headers of the console"),
		SecurityHeadersBehavior: &awscloudfront.ResponseSecurityHeadersBehavior{
			ContentSecurityPolicy: &awscloudfront.ResponseHeadersContentSecurityPolicy{ContentSecurityPolicy: jsii.String(headers.Policy), Override: jsii.Bool(true)},
			ContentTypeOptions:    &awscloudfront.ResponseHeadersContentTypeOptions{Override: jsii.Bool(true)},
			ReferrerPolicy:        &awscloudfront.ResponseHeadersReferrerPolicy{ReferrerPolicy: awscloudfront.HeadersReferrerPolicy_NO_REFERRER, Override: jsii.Bool(true)},
		},
		CustomHeadersBehavior: &awscloudfront.ResponseCustomHeadersBehavior{CustomHeaders: &[]*awscloudfront.ResponseCustomHeader{
			{Header: jsii.String("Cross-Origin-Opener-Policy"), Value: jsii.String(headers.OpenerPolicy), Override: jsii.Bool(true)},
		}},
	})
	pages := awscloudfront.NewFunction(e.stack, jsii.String("ConsolePages"), &awscloudfront.FunctionProps{
		Code: awscloudfront.FunctionCode_FromInline(jsii.String(consolePages)), Runtime: awscloudfront.FunctionRuntime_JS_2_0(),
		Comment: jsii.String("Names the file of a page of the console"),
	})
	behavior := &awscloudfront.BehaviorOptions{
		Origin:         awscloudfrontorigins.S3BucketOrigin_WithOriginAccessControl(bucket, &awscloudfrontorigins.S3BucketOriginWithOACProps{OriginId: jsii.String("console")}),
		AllowedMethods: awscloudfront.AllowedMethods_ALLOW_GET_HEAD(), CachePolicy: awscloudfront.CachePolicy_CACHING_OPTIMIZED(), Compress: jsii.Bool(true),
		ViewerProtocolPolicy: awscloudfront.ViewerProtocolPolicy_REDIRECT_TO_HTTPS, ResponseHeadersPolicy: response,
		FunctionAssociations: &[]*awscloudfront.FunctionAssociation{{EventType: awscloudfront.FunctionEventType_VIEWER_REQUEST, Function: pages}},
	}
	behaviors["/console"], behaviors["/console/*"] = behavior, behavior
}
