package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfront"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfrontorigins"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
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
		// WebSockets need their own behaviour; a behaviour also makes the origin known, so that
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
