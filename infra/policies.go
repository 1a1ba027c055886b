package main

import (
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

// grant gives a function's role the rights.
func (r rights) grant(d *dataStack, o options, to awsiam.Role) {
	r.statements(d, o, func(s awsiam.PolicyStatement) { to.AddToPolicy(s) })
}

// grantTask gives a task the rights.
func (r rights) grantTask(d *dataStack, o options, to awsecs.TaskDefinition) {
	r.statements(d, o, func(s awsiam.PolicyStatement) { to.AddToTaskRolePolicy(s) })
}

// condition is one of IAM's: values by key, by operator.
type condition map[string]map[string]any

// allower adds a statement; it adds none where there are no resources.
type allower func(when condition, actions []string, resources ...*string)

// statements turns the rights into statements.
func (r rights) statements(d *dataStack, o options, add func(awsiam.PolicyStatement)) {
	allow := func(when condition, actions []string, resources ...*string) {
		p := &awsiam.PolicyStatementProps{Actions: jsii.Strings(actions...), Resources: &resources}
		if when != nil {
			all := map[string]any{}
			for operator, keys := range when {
				all[operator] = keys
			}
			p.Conditions = &all
		}
		if len(resources) > 0 {
			add(awsiam.NewPolicyStatement(p))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.tables)) {
		var actions []string
		for _, a := range r.tables[name] {
			actions = append(actions, "dynamodb:"+a)
		}
		allow(nil, actions, d.tables[name].TableArn())
	}
	if r.outbox {
		allow(condition{"ForAllValues:StringLike": {"dynamodb:LeadingKeys": outboxKeys}},
			[]string{"dynamodb:PutItem", "dynamodb:DeleteItem"}, d.tables["control"].TableArn())
	}
	r.onBucket(d, allow)
	if r.vectors && o.vectorBucket != "" {
		arn := d.stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String("s3vectors"), Resource: jsii.String("bucket"), ResourceName: jsii.String(o.vectorBucket)})
		allow(nil, []string{"s3vectors:ListIndexes"}, arn)
		allow(nil, []string{"s3vectors:CreateIndex", "s3vectors:PutVectors", "s3vectors:QueryVectors", "s3vectors:GetVectors", "s3vectors:ListVectors", "s3vectors:DeleteVectors"},
			jsii.String(*arn+"/index/*"))
	}
	if r.vectors {
		d.onVectorTable(allow)
	}
	if r.asks {
		d.onQueries(allow)
	}
	for _, q := range r.sends {
		allow(nil, []string{"sqs:SendMessage"}, d.queues[q].QueueArn())
	}
	if r.mails && o.mailIdentity != "" {
		allow(nil, []string{"ses:SendEmail"}, jsii.String(o.mailIdentity))
	}
	onKeys("kms:GenerateDataKey", r.seals, allow, d.seals.KeyArn())
	onKeys("kms:Decrypt", r.opens, allow, append([]*string{d.seals.KeyArn()}, *jsii.Strings(o.formerKeys...)...)...)
}

func onKeys(action string, purposes []string, allow allower, keys ...*string) {
	if len(purposes) > 0 {
		allow(condition{
			"StringEquals": {"kms:EncryptionContext:purpose": purposes},
			"Null":         {"kms:EncryptionContext:org": "false"},
		}, []string{action}, keys...)
	}
}

func (r rights) onBucket(d *dataStack, allow allower) {
	patterns := func(prefixes []string) (list []string) {
		for _, p := range prefixes {
			list = append(list, p+"*")
		}
		return list
	}
	below := func(prefixes []string) (arns []*string) {
		for _, p := range patterns(prefixes) {
			arns = append(arns, d.bucket.ArnForObjects(jsii.String(p)))
		}
		return arns
	}
	allow(nil, []string{"s3:GetObject"}, below(r.gets)...)
	allow(nil, []string{"s3:PutObject"}, below(r.puts)...)
	allow(nil, []string{"s3:DeleteObject"}, below(r.deletes)...)
	allow(nil, []string{"s3:AbortMultipartUpload"}, below(r.aborts)...)
	if len(r.lists) > 0 {
		allow(condition{"StringLike": {"s3:prefix": patterns(r.lists)}}, []string{"s3:ListBucket"}, d.bucket.BucketArn())
	}
	if r.absent { // a request for an object names no prefix
		allow(condition{"StringLikeIfExists": {"s3:prefix": patterns(r.gets)}}, []string{"s3:ListBucket"}, d.bucket.BucketArn())
	}
}
