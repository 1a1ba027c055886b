package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/host/placement"
)

// rights are what a function may do, and no more.
type rights struct {
	read, write []string // tables; those of write are also read
	append      []string // tables that are only added to
	outbox      bool     // the rows of the control table that records leave by
	bucketRead  bool
	bucketWrite bool
	bucketPrune bool // delete objects
	cache       bool // read answers of the cache and use its vectors; keep files for batches
	sends       []string
	seal, open  bool // use of the key that wraps data keys
}

// outboxKeys are the partitions of the outbox.
const outboxKeys = "SYS#OUTBOX#*"

var readTable = []string{"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"}

var writeTable = append(slices.Clone(readTable), "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem", "dynamodb:ConditionCheckItem")

// dataPlane reads what the administration wrote, counts and settles, and sends
// its events.
var dataPlane = rights{
	read: []string{"control", "keys"}, write: []string{"rate", "spend", "usage"}, bucketWrite: true,
	sends: []string{"usage", "audit"}, outbox: true, seal: true, open: true, cache: true,
}

// withBatches may also ask for steps of batches.
var withBatches = func() rights {
	r := dataPlane
	r.sends = append(slices.Clone(r.sends), "batches")
	return r
}()

// administration changes resources. It seals credentials and can open none.
var administration = rights{write: []string{"control", "keys", "rate", "spend"}, sends: []string{"audit", "usage"}, seal: true}

// exceptions are the functions whose rights are not those of their kind.
var exceptions = map[string]rights{
	"analytics": {read: []string{"keys", "usage"}, write: []string{"control"}, bucketRead: true, sends: []string{"audit", "usage"}},
	"logs":      {read: []string{"keys", "usage"}, write: []string{"control"}, bucketRead: true, sends: []string{"audit", "usage"}, open: true},
	"auditlogs": {read: []string{"keys", "audit"}, write: []string{"control"}, sends: []string{"audit", "usage"}},
	"docs":      {read: []string{"keys"}, write: []string{"control"}, sends: []string{"audit", "usage"}},
	"usage":     {write: []string{"usage", "spend"}, read: []string{"control"}, bucketRead: true, bucketWrite: true, sends: []string{"audit", "usage"}, outbox: true},
	"requeue":   {sends: []string{"usage"}},
	"batches":   withBatches,
	"batchruns": withBatches,
	"audit":     {append: []string{"audit"}},
	"repair":    {cache: true, write: []string{"control", "keys", "spend", "usage"}, bucketRead: true, bucketWrite: true, bucketPrune: true, sends: []string{"audit", "usage"}, seal: true},
	// It hands out the secrets that automatic rotations have made.
	"apikeys": {write: []string{"control", "keys", "rate", "spend"}, sends: []string{"audit", "usage"}, seal: true, open: true},
}

func rightsOf(name string, place placement.Place) rights {
	if r, ok := exceptions[name]; ok {
		return r
	}
	if place == placement.Stream {
		return dataPlane
	}
	return administration
}

// grant gives the rights to a function's role.
func (r rights) grant(d *dataStack, o options, to awsiam.Role) {
	r.statements(d, o, func(s awsiam.PolicyStatement) { to.AddToPolicy(s) })
}

// grantTask gives the rights to a task.
func (r rights) grantTask(d *dataStack, o options, to awsecs.TaskDefinition) {
	r.statements(d, o, func(s awsiam.PolicyStatement) { to.AddToTaskRolePolicy(s) })
}

// statements writes the rights down.
func (r rights) statements(d *dataStack, o options, add func(awsiam.PolicyStatement)) {
	allow := func(actions []string, resources ...*string) {
		if len(resources) > 0 {
			add(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: jsii.Strings(actions...), Resources: &resources}))
		}
	}
	tables := func(names []string) (arns []*string) {
		for _, n := range names {
			arns = append(arns, d.tables[n].TableArn())
		}
		return arns
	}
	allow(readTable, tables(r.read)...)
	allow(writeTable, tables(r.write)...)
	allow([]string{"dynamodb:PutItem"}, tables(r.append)...)
	if r.outbox {
		add(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions: jsii.Strings("dynamodb:PutItem", "dynamodb:DeleteItem"), Resources: &[]*string{d.tables["control"].TableArn()},
			Conditions: &map[string]any{"ForAllValues:StringLike": map[string]any{"dynamodb:LeadingKeys": []string{outboxKeys}}},
		}))
	}
	objects := d.bucket.ArnForObjects(jsii.String("*"))
	if r.bucketRead {
		allow([]string{"s3:GetObject"}, objects)
		allow([]string{"s3:ListBucket"}, d.bucket.BucketArn())
	}
	if r.bucketWrite {
		allow([]string{"s3:PutObject"}, objects)
	}
	if r.cache {
		held := d.bucket.ArnForObjects(jsii.String(heldFiles + "*"))
		allow([]string{"s3:GetObject"}, d.bucket.ArnForObjects(jsii.String(cachedAnswers+"*")), held)
		allow([]string{"s3:DeleteObject"}, held)
		add(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions: jsii.Strings("s3:ListBucket"), Resources: &[]*string{d.bucket.BucketArn()},
			Conditions: &map[string]any{"StringLike": map[string]any{"s3:prefix": heldFiles + "*"}},
		}))
		if o.vectorBucket != "" {
			arn := d.stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String("s3vectors"), Resource: jsii.String("bucket"), ResourceName: jsii.String(o.vectorBucket)})
			allow([]string{"s3vectors:ListIndexes"}, arn)
			allow([]string{"s3vectors:CreateIndex", "s3vectors:PutVectors", "s3vectors:QueryVectors", "s3vectors:GetVectors", "s3vectors:ListVectors", "s3vectors:DeleteVectors"},
				jsii.String(*arn+"/index/*"))
		}
	}
	if r.bucketPrune {
		allow([]string{"s3:DeleteObject"}, objects)
	}
	for _, q := range r.sends {
		allow([]string{"sqs:SendMessage"}, d.queues[q].QueueArn())
	}
	if r.seal {
		allow([]string{"kms:GenerateDataKey"}, d.seals.KeyArn())
	}
	if r.open {
		allow([]string{"kms:Decrypt"}, d.seals.KeyArn())
	}
}

// environment is what a process must know to use its rights.
func (r rights) environment(d *dataStack, o options) map[string]*string {
	env := map[string]*string{"GATEWAY_TABLE_PREFIX": jsii.String(o.name + "-")}
	if r.bucketRead || r.bucketWrite {
		env["GATEWAY_BUCKET"] = d.bucket.BucketName()
		for name, days := range map[string]string{"GATEWAY_BODY_RETENTION_DAYS": o.bodyDays, "GATEWAY_RECORD_RETENTION_DAYS": o.recordDays} {
			if days != "" {
				env[name] = jsii.String(days)
			}
		}
	}
	if r.cache && o.vectorBucket != "" {
		env["GATEWAY_VECTOR_BUCKET"] = jsii.String(o.vectorBucket)
	}
	for _, q := range r.sends {
		env["GATEWAY_"+map[string]string{"audit": "AUDIT", "usage": "USAGE", "batches": "BATCH"}[q]+"_QUEUE_URL"] = d.queues[q].QueueUrl()
	}
	if r.seal || r.open {
		env["GATEWAY_KMS_KEY_ID"] = d.seals.KeyArn()
	}
	return env
}

// originSecrets is the variable of the two live values.
func (d *dataStack) originSecrets() *string {
	part := func(key string) string {
		return *d.originSecret.SecretValueFromJson(jsii.String(key)).UnsafeUnwrap() // a dynamic reference, no value
	}
	return jsii.String(part("current") + "," + part("previous"))
}
