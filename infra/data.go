package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
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

// Prefixes in the bucket of large answers of the cache, files for batches, files of
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
