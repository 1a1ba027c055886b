package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/host/placement"
)

// rights are all that a function may do. The tests of local/onlambda drive every function
// with its role; they report rights that are missing and rights that nothing uses.
type rights struct {
	tables  map[string][]string // actions on a table, without their service
	outbox  bool                // adds and deletes rows of the outbox, in the control table
	gets    []string            // bucket prefixes with objects that are read,
	puts    []string            // written,
	deletes []string            // deleted
	lists   []string            // and listed
	aborts  []string            // prefixes with multipart uploads that may be aborted
	// absent: S3 reports a missing object below gets as missing; without this permission it
	// responds with an access error.
	absent  bool
	vectors bool     // the index of the semantic cache
	sends   []string // queues
	names   []string // queues with an address that the process needs to start
	// Purposes in KMS's encryption context for which data keys may be made and opened: the
	// tables of sealed values, "log" for bodies, "held" for files, "mcp" for sessions and for
	// states that clients of MCP bring back.
	seals, opens []string
	mails        bool // sends mails, from the installation's identity
	asks         bool // queries Athena for ranges that are too large to read itself
	retains      bool // sets retention periods like those of usage records
}

// outboxKeys are the partitions of the outbox, and of notices.
var outboxKeys = []string{"SYS#OUTBOX#*", "SYS#NOTICES#*"}

// Prefixes of the bucket besides cachedAnswers and heldFiles.
const (
	loggedBodies = "bodies/"
	segments     = "segments/"
)

// Actions on tables as the store uses them: a transaction needs those of its parts.
var (
	lookUp   = []string{"GetItem"}
	readMany = []string{"GetItem", "BatchGetItem"}
	readAll  = []string{"GetItem", "BatchGetItem", "Query"}
	manage   = []string{"GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"}
)

// dataPlane reads configuration, counts and settles, and sends events. The table rate also
// contains the state of circuit breakers, which is read. The table usage also contains cached
// responses and the ownership of provider objects.
var dataPlane = rights{
	tables: map[string][]string{
		"control": readAll, "keys": lookUp, "rate": {"GetItem", "UpdateItem"},
		"spend": {"GetItem", "BatchGetItem", "PutItem", "UpdateItem"},
		"usage": {"GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"},
	},
	gets: []string{cachedAnswers, heldFiles}, puts: []string{loggedBodies, cachedAnswers, heldFiles}, deletes: []string{heldFiles}, lists: []string{heldFiles},
	vectors: true, sends: []string{"usage", "audit"}, outbox: true, seals: []string{"log", "usage", "held"}, opens: []string{"control", "usage", "held"},
}

// withBatches may also send to the queue of batches: to have a step of a batch done, or to
// have a look at a response that is made in the background.
var withBatches = func() rights {
	r := dataPlane
	r.sends = append(slices.Clone(r.sends), "batches")
	return r
}()

// sessions calls MCP servers: it seals and opens what clients bring back, and where their
// users sign in.
func (r rights) sessions() rights {
	r.seals, r.opens = append(slices.Clone(r.seals), "mcp"), append(slices.Clone(r.opens), "mcp")
	return r
}

// rehearsal walks through requests without sending them to a provider: it counts and logs
// its own calls, and changes nothing else.
var rehearsal = rights{
	tables: map[string][]string{"control": readAll, "keys": lookUp, "rate": {"GetItem", "UpdateItem"}, "spend": readMany, "usage": readAll},
	gets:   []string{cachedAnswers}, puts: []string{loggedBodies}, sends: []string{"usage"}, names: []string{"audit"},
	vectors: true, seals: []string{"log"}, opens: []string{"control", "usage"},
}

// administration changes resources. It seals credentials and can open none.
var administration = rights{
	tables: map[string][]string{"control": manage, "keys": lookUp},
	sends:  []string{"audit"}, names: []string{"usage"}, seals: []string{"control"},
}

// limited administers things that have limits: it reads and corrects their counters. In
// doing so it may settle requests that began and were never settled, which sends usage
// events.
func limited(keys ...string) rights {
	r := administration
	r.tables = map[string][]string{"control": manage, "keys": keys, "rate": {"DeleteItem"}, "spend": {"GetItem", "BatchGetItem", "UpdateItem", "DeleteItem"}}
	r.sends, r.names = []string{"audit", "usage"}, nil
	return r
}

// reader is an administration that changes nothing.
func reader(of string, actions ...string) rights {
	return rights{tables: map[string][]string{"control": readMany, "keys": lookUp, of: actions}, names: []string{"audit", "usage"}}
}

// exceptions are the functions with permissions that differ from those of their kind.
var exceptions = func() map[string]rights {
	analytics := reader("usage", "GetItem", "Query", "PutItem") // it notes how much its queries of Athena have read
	analytics.tables["control"] = readAll                       // for the feedback of the organization's workspaces
	analytics.gets, analytics.absent, analytics.asks = []string{segments}, true, true
	logs := analytics                                                                                                              // also stores exports, and links to them
	logs.tables = map[string][]string{"control": manage, "keys": lookUp, "usage": {"GetItem", "BatchGetItem", "Query", "PutItem"}} // it remembers which spans of a trace are counted
	logs.asks = false
	logs.gets, logs.opens, logs.sends, logs.names = []string{segments, loggedBodies, exported}, []string{"log"}, []string{"audit", "exports", "usage"}, nil
	logs.puts, logs.seals = []string{loggedBodies}, []string{"log"} // stores logs of requests reported by clients
	logs.deletes = []string{exported}                               // files of deleted exports
	apikeys := limited("GetItem", "PutItem", "DeleteItem")
	apikeys.opens = []string{"control"}                // secrets that automatic rotations made
	apikeys.tables["usage"] = []string{"BatchGetItem"} // when keys were last used
	testing := limited(lookUp...)
	testing.opens = []string{"control"}           // credentials of providers that are tested
	testing.tables["usage"] = []string{"PutItem"} // which credentials were rejected
	policies := administration                    // it lists counters and resets them
	policies.tables = map[string][]string{"control": manage, "keys": lookUp, "rate": {"Query"}, "spend": {"GetItem", "BatchGetItem", "Query", "UpdateItem"}}
	policies.sends, policies.names, policies.seals = []string{"audit", "usage"}, nil, nil
	users := administration
	users.tables, users.mails = map[string][]string{"control": manage, "keys": {"GetItem", "PutItem", "DeleteItem"}}, true
	references := administration
	references.opens = []string{"control"} // the credential of a reference that is checked
	registries := administration           // call registered servers, to test them
	registries.opens = []string{"control"}
	mcpservers := registries                                                                                                                                // users sign in at MCP servers
	mcpservers.tables = map[string][]string{"control": manage, "keys": {"GetItem", "PutItem", "DeleteItem"}, "usage": {"GetItem", "PutItem", "DeleteItem"}} // and it publishes the gateway's keys
	mcpservers.seals, mcpservers.opens = []string{"control", "mcp"}, []string{"control", "mcp"}
	plain := administration
	plain.seals = nil
	auth := administration // it calls identity providers; it begins, notes and ends sessions, and gives people keys
	auth.tables = map[string][]string{"control": manage, "keys": {"GetItem", "PutItem", "UpdateItem", "DeleteItem"}}
	auth.opens = []string{"control"}
	scim := administration // it hands out tokens, ends keys and sessions of people who are deactivated, and restores keys
	scim.tables = map[string][]string{"control": manage, "keys": {"GetItem", "PutItem", "DeleteItem"}}
	prompts := administration // they look up the results of tests of a version
	prompts.tables = map[string][]string{"control": manage, "keys": lookUp, "usage": lookUp}
	feedback := reader("usage", "GetItem", "PutItem")
	feedback.retains = true
	return map[string]rights{
		"mcpservers": mcpservers, "agentservers": registries, "deployments": plain, "scim": scim, "feedback": feedback, "auth": auth,
		"users": users, "prompts": prompts, "secretreferences": references,
		"analytics": analytics, "logs": logs, "auditlogs": reader("audit", "Query"),
		"docs":         {tables: map[string][]string{"control": readMany, "keys": lookUp}, names: []string{"audit", "usage"}}, // the document is in the binary; it names the gateway's own address, where tools are called
		"modelpricing": {tables: map[string][]string{"control": readMany, "keys": lookUp}, names: []string{"audit", "usage"}}, // the prices are in the binary; organizations that have their own prices read those too
		"apikeys":      apikeys, "workspaces": limited("GetItem", "PutItem", "DeleteItem"), "integrations": limited(lookUp...), "providers": testing,
		"policies": policies, "dryrun": rehearsal, "batches": withBatches, "batchruns": withBatches, "passthrough": withBatches,
		"mcp": dataPlane.sessions(), "messages": dataPlane.sessions(), "responses": withBatches.sessions(), // these call servers
		"usage": {
			tables: map[string][]string{"control": readAll, "usage": {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"}, "spend": {"GetItem", "BatchGetItem", "PutItem", "UpdateItem"}},
			gets:   []string{loggedBodies}, puts: []string{segments}, deletes: []string{segments}, sends: []string{"audit", "usage"}, outbox: true,
			opens: []string{"control", "log"}, // headers and content of telemetry
		},
		"exports": {
			tables: map[string][]string{"control": append(slices.Clone(readAll), "PutItem"), "usage": {"GetItem", "Query"}}, // how long workspaces keep logs
			gets:   []string{segments, loggedBodies, exported}, absent: true, puts: []string{exported}, deletes: []string{exported}, aborts: []string{exported}, opens: []string{"log"}, sends: []string{"exports"},
		},
		"requeue": {sends: []string{"usage"}},
		"audit":   {tables: map[string][]string{"audit": {"PutItem"}}},
		"repair": {
			tables: map[string][]string{
				"control": manage, "keys": {"GetItem", "PutItem", "DeleteItem"}, "spend": {"GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem"},
				"usage": {"GetItem", "Query", "PutItem", "DeleteItem", "BatchWriteItem"},
			},
			gets: []string{segments}, absent: true, puts: []string{segments}, deletes: []string{segments, loggedBodies, exported}, lists: []string{loggedBodies, exported},
			vectors: true, sends: []string{"audit", "usage"}, seals: []string{"control"}, opens: []string{"control"}, // secrets of webhooks
			mails: true,
		},
	}
}()

func rightsOf(name string, place placement.Place) rights {
	if r, ok := exceptions[name]; ok {
		return r
	}
	if place == placement.Stream {
		return dataPlane
	}
	return administration
}

// environment are the variables that a process needs to use its rights.
func (r rights) environment(d *dataStack, o options) map[string]*string {
	env := map[string]*string{"GATEWAY_NAME": jsii.String(o.name), "GATEWAY_TABLE_PREFIX": jsii.String(d.tablesBegin(o))}
	if len(r.gets)+len(r.puts) > 0 {
		env["GATEWAY_BUCKET"] = d.bucket.BucketName()
		for name, days := range map[string]string{"GATEWAY_BODY_RETENTION_DAYS": o.bodyDays, "GATEWAY_RECORD_RETENTION_DAYS": o.recordDays} {
			if days != "" {
				env[name] = jsii.String(days)
			}
		}
	}
	if r.retains && o.recordDays != "" {
		env["GATEWAY_RECORD_RETENTION_DAYS"] = jsii.String(o.recordDays)
	}
	if o.pricesURL != "" {
		env["GATEWAY_PRICES_URL"] = jsii.String(o.pricesURL)
	}
	if o.address() != "" { // links begin with it, and requests of browsers must come from it
		env["GATEWAY_PUBLIC_URL"] = jsii.String(o.address())
	}
	if r.vectors && o.vectorBucket != "" {
		env["GATEWAY_VECTOR_BUCKET"] = jsii.String(o.vectorBucket)
	}
	if r.vectors {
		d.vectorEnvironment(o, env)
	}
	if r.asks {
		d.queryEnvironment(env)
	}
	for _, q := range slices.Concat(r.sends, r.names) {
		env["GATEWAY_"+map[string]string{"audit": "AUDIT", "usage": "USAGE", "batches": "BATCH", "exports": "EXPORT"}[q]+"_QUEUE_URL"] = d.queues[q].QueueUrl()
	}
	if r.mails {
		for name, v := range map[string]string{"GATEWAY_MAIL_FROM": o.mailFrom, "GATEWAY_MAIL_IDENTITY": o.mailIdentity} {
			if v != "" {
				env[name] = jsii.String(v)
			}
		}
	}
	if len(r.seals)+len(r.opens) > 0 {
		env["GATEWAY_KMS_KEY_ID"] = d.seals.KeyArn()
	}
	if len(r.opens) > 0 && len(o.formerKeys) > 0 {
		env["GATEWAY_KMS_FORMER_KEY_IDS"] = jsii.String(strings.Join(o.formerKeys, ","))
	}
	return env
}

// originSecrets is the variable of the two live values.
func (d *dataStack) originSecrets() *string {
	part := func(key string) string {
		return *d.originSecret.SecretValueFromJson(jsii.String(key)).UnsafeUnwrap() // a dynamic reference, not the value
	}
	return jsii.String(part("current") + "," + part("previous"))
}

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
