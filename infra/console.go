package main

import (
	_ "embed"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfront"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfrontorigins"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3deployment"
	"github.com/aws/jsii-runtime-go"

	"gateway/functions/console/headers"
)

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
