package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsssm"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"gateway/shared/cache/dynamovectors/layout"
)

// tableNames are the tables of shared/store.
var tableNames = []string{"control", "keys", "rate", "spend", "usage", "audit"}

// workerTimeout is how long a worker may take for a batch of messages. A message stays
// hidden for six times as long, plus the batching window.
var (
	workerTimeout    = 120.0
	auditWindow      = 5.0
	queueVisibility  = map[string]float64{"audit": 6*workerTimeout + auditWindow, "usage": 6*workerTimeout + mostWindow, "batches": 6 * runTimeout, "exports": 6 * exportTimeout}
	runTimeout       = 900.0 // for one step of a batch
	exportTimeout    = 600.0 // for one step of an export
	mostWindow       = 300.0 // how long messages may be collected at most
	maxReceives      = 5.0
	retentionSeconds = 14.0 * 24 * 3600
)

// dataStack holds what outlives everything else.
type dataStack struct {
	stack        awscdk.Stack
	tables       map[string]awsdynamodb.TableV2
	vectors      awsdynamodb.TableV2 // of the semantic cache; nil: none
	seals        awskms.Key          // wraps the data keys of credentials and bodies
	bucket       awss3.Bucket
	accessLogs   awss3.Bucket
	queues       map[string]awssqs.Queue // audit, usage, batches and exports
	dead         map[string]awssqs.Queue
	originSecret awssecretsmanager.Secret
	queries      *queries // nil: none
}

func newDataStack(scope constructs.Construct, props *awscdk.StackProps, o options) *dataStack {
	d := &dataStack{
		stack:  awscdk.NewStack(scope, jsii.String("Data"), props),
		tables: map[string]awsdynamodb.TableV2{}, queues: map[string]awssqs.Queue{}, dead: map[string]awssqs.Queue{},
	}
	for _, name := range tableNames {
		d.tables[name] = awsdynamodb.NewTableV2(d.stack, jsii.String("Table-"+name), &awsdynamodb.TablePropsV2{
			TableName:                        jsii.String(d.tablesBegin(o) + name),
			PartitionKey:                     &awsdynamodb.Attribute{Name: jsii.String("pk"), Type: awsdynamodb.AttributeType_STRING},
			SortKey:                          &awsdynamodb.Attribute{Name: jsii.String("sk"), Type: awsdynamodb.AttributeType_STRING},
			Billing:                          awsdynamodb.Billing_OnDemand(nil),
			PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: jsii.Bool(true)},
			DeletionProtection:               jsii.Bool(o.protect == "on"),
			TimeToLiveAttribute:              jsii.String("expires"),
			RemovalPolicy:                    kept,
		})
	}
	d.vectors = d.newVectorTable(o)
	d.keys(o)
	d.buckets()
	d.queries = d.newQueries(o)
	for _, name := range queueNames {
		d.queue(o, name)
	}
	d.originSecret = awssecretsmanager.NewSecret(d.stack, jsii.String("OriginSecret"), &awssecretsmanager.SecretProps{
		Description: jsii.String("Proves to the origins that a request came through the edge; previous stays valid while it is replaced"),
		GenerateSecretString: &awssecretsmanager.SecretStringGenerator{
			SecretStringTemplate: jsii.String(`{"previous":""}`), GenerateStringKey: jsii.String("current"),
			ExcludePunctuation: jsii.Bool(true), PasswordLength: jsii.Number(48),
		},
	})
	return d
}

func (d *dataStack) keys(o options) {
	d.seals = awskms.NewKey(d.stack, jsii.String("SealKey"), &awskms.KeyProps{
		Description: jsii.String("Wraps the data keys of credentials and logged bodies"), Alias: jsii.String("alias/" + o.name + "-seal"),
		EnableKeyRotation: jsii.Bool(true), RemovalPolicy: kept,
	})
}

// Prefixes in the bucket of large responses of the cache, files for batches, files of
// exports, and results of queries.
const (
	cachedAnswers = "cache/"
	heldFiles     = "held/"
	exported      = "exports/"
)

func (d *dataStack) buckets() {
	day := func(n float64) awscdk.Duration { return awscdk.Duration_Days(jsii.Number(n)) }
	d.accessLogs = awss3.NewBucket(d.stack, jsii.String("AccessLogs"), &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(), EnforceSSL: jsii.Bool(true), Encryption: awss3.BucketEncryption_S3_MANAGED,
		ObjectOwnership: awss3.ObjectOwnership_OBJECT_WRITER, // CloudFront writes its logs by ACL
		LifecycleRules:  &[]*awss3.LifecycleRule{{Expiration: day(90)}},
		RemovalPolicy:   kept,
	})
	d.bucket = awss3.NewBucket(d.stack, jsii.String("Bucket"), &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(), EnforceSSL: jsii.Bool(true), Encryption: awss3.BucketEncryption_S3_MANAGED,
		Versioned: jsii.Bool(false), ServerAccessLogsBucket: d.accessLogs, ServerAccessLogsPrefix: jsii.String("bucket/"),
		LifecycleRules: &[]*awss3.LifecycleRule{{
			AbortIncompleteMultipartUploadAfter: day(1),
			Transitions:                         &[]*awss3.Transition{{StorageClass: awss3.StorageClass_INTELLIGENT_TIERING(), TransitionAfter: day(30)}},
		}, {
			Prefix: jsii.String(cachedAnswers), Expiration: day(302), // the cache's maximum age is shorter
		}, {
			Prefix: jsii.String(heldFiles), Expiration: day(31), // files that the gateway stores for providers without a file API
		}, {
			Prefix: jsii.String(exported), Expiration: day(8), // files of exports can be fetched for seven days
		}, {
			Prefix: jsii.String(queried), Expiration: day(1), // the result of a query is read at once
		}},
		RemovalPolicy: kept,
	})
}

// queue makes a queue and its dead letters.
func (d *dataStack) queue(o options, name string) {
	full := unique(d.stack, o) + name
	dead := awssqs.NewQueue(d.stack, jsii.String("Dead-"+name), &awssqs.QueueProps{
		QueueName: jsii.String(full + "-dead"), Encryption: awssqs.QueueEncryption_SQS_MANAGED, EnforceSSL: jsii.Bool(true),
		RetentionPeriod: awscdk.Duration_Seconds(jsii.Number(retentionSeconds)), RemovalPolicy: kept,
	})
	// By its name: a reference would be circular, because the queue's own redrive policy
	// refers to the dead letters.
	dead.Node().DefaultChild().(awssqs.CfnQueue).SetRedriveAllowPolicy(map[string]any{
		"redrivePermission": "byQueue",
		"sourceQueueArns":   []any{d.stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String("sqs"), Resource: jsii.String(full)})},
	})
	d.dead[name] = dead
	d.queues[name] = awssqs.NewQueue(d.stack, jsii.String("Queue-"+name), &awssqs.QueueProps{
		QueueName: jsii.String(full), Encryption: awssqs.QueueEncryption_SQS_MANAGED, EnforceSSL: jsii.Bool(true),
		VisibilityTimeout: awscdk.Duration_Seconds(jsii.Number(queueVisibility[name])), MaxMessageSizeBytes: jsii.Number(1 << 20),
		RetentionPeriod: awscdk.Duration_Seconds(jsii.Number(retentionSeconds)),
		DeadLetterQueue: &awssqs.DeadLetterQueue{Queue: dead, MaxReceiveCount: jsii.Number(maxReceives)},
	})
}

// Resources that remain when a stack is destroyed keep their names, so a new stack must not
// use the name of a table or a queue again. The names contain the id of the stack, which is
// new each time a stack is made.

// kept is the removal policy of resources with data: a first deployment that fails removes them
// again, nothing else deletes them.
const kept = awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE

// unique is the prefix of names of this stack: gateway-1a2b3c4d-.
func unique(stack awscdk.Stack, o options) string {
	id := awscdk.Fn_Select(jsii.Number(2), awscdk.Fn_Split(jsii.String("/"), stack.StackId(), nil))
	return o.name + "-" + *awscdk.Fn_Select(jsii.Number(0), awscdk.Fn_Split(jsii.String("-"), id, nil)) + "-"
}

// tablesBegin is the prefix of the names of tables.
func (d *dataStack) tablesBegin(o options) string {
	if o.tablePrefix != "" {
		return o.tablePrefix
	}
	return unique(d.stack, o)
}

// The edge adds the origin secret to the requests it sends; functions and the container
// reject every request without it. The worker that replaces the secret finds the
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

// maxVectorIndexes is how many numbers of dimensions, with an index each, a table may have.
const maxVectorIndexes = 5

// setVectorDimensions reads numbers of dimensions, separated by commas.
func setVectorDimensions(o *options, v string) bool {
	for _, part := range strings.Split(v, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > layout.MaxDimensions || slices.Contains(o.vectorDimensions, n) {
			return false
		}
		o.vectorDimensions = append(o.vectorDimensions, n)
	}
	return len(o.vectorDimensions) <= maxVectorIndexes
}

// newVectorTable makes the table of the semantic cache's vectors, with one vector index for
// each number of dimensions; nil when there is none. The CDK's classes do not know such
// indexes yet, but CloudFormation does. The table holds only a cache, so it is deleted with
// the stack.
func (d *dataStack) newVectorTable(o options) awsdynamodb.TableV2 {
	if len(o.vectorDimensions) == 0 {
		return nil
	}
	t := awsdynamodb.NewTableV2(d.stack, jsii.String("Vectors"), &awsdynamodb.TablePropsV2{
		TableName:           jsii.String(unique(d.stack, o) + "vectors"),
		PartitionKey:        &awsdynamodb.Attribute{Name: jsii.String(layout.PK), Type: awsdynamodb.AttributeType_STRING},
		SortKey:             &awsdynamodb.Attribute{Name: jsii.String(layout.SK), Type: awsdynamodb.AttributeType_STRING},
		Billing:             awsdynamodb.Billing_OnDemand(nil),
		TimeToLiveAttribute: jsii.String(layout.Expires), RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	attributes := []any{}
	for _, name := range []string{layout.PK, layout.SK, layout.Tenant} {
		attributes = append(attributes, map[string]any{"AttributeName": name, "AttributeType": "S"})
	}
	indexes := []any{}
	for _, n := range o.vectorDimensions {
		indexes = append(indexes, map[string]any{
			"IndexName": fmt.Sprint(layout.Index, n), "Dimensions": n, "DistanceFunction": "COSINE",
			"VectorAttribute": map[string]any{"AttributeName": fmt.Sprint(layout.Vector, n)},
			"SearchSchema":    []any{map[string]any{"AttributeName": layout.Tenant, "SearchSchemaElementType": "HASH"}},
			"Projection":      map[string]any{"ProjectionType": "INCLUDE", "NonKeyAttributes": []any{layout.Expires}},
		})
	}
	raw := t.Node().DefaultChild().(awsdynamodb.CfnGlobalTable)
	raw.AddPropertyOverride(jsii.String("AttributeDefinitions"), attributes)
	raw.AddPropertyOverride(jsii.String("VectorIndexes"), indexes)
	cdknag.NagSuppressions_AddResourceSuppressions(t, &[]*cdknag.NagPackSuppression{{
		Id: jsii.String("AwsSolutions-DDB3"), Reason: jsii.String("Vectors of cached answers: what is lost is asked for again"),
	}}, jsii.Bool(true))
	return t
}

// onVectorTable are the rights on the table's items and its indexes.
func (d *dataStack) onVectorTable(allow allower) {
	if d.vectors == nil {
		return
	}
	allow(nil, []string{"dynamodb:PutItem"}, d.vectors.TableArn())
	allow(nil, []string{"dynamodb:SearchVectors"}, jsii.String(*d.vectors.TableArn()+"/index/"+layout.Index+"*"))
}

// vectorEnvironment sets the variables with the location of the table.
func (d *dataStack) vectorEnvironment(o options, env map[string]*string) {
	if d.vectors == nil {
		return
	}
	var list []string
	for _, n := range o.vectorDimensions {
		list = append(list, strconv.Itoa(n))
	}
	env["GATEWAY_VECTOR_TABLE"], env["GATEWAY_VECTOR_DIMENSIONS"] = d.vectors.TableArn(), jsii.String(strings.Join(list, ","))
}
