package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsathena"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsglue"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/host/alias"
	"gateway/shared/host/placement"
	"gateway/shared/mcp/cors"
	"gateway/shared/usage/segment/columns"
	"gateway/shared/wire/azure"
)

// queried is the prefix of the bucket below which Athena writes the results of queries.
const queried = "queries/"

// usageTable is the table of the files of usage in the installation's database.
const usageTable = "requests"

// setQueryLimit reads how much one query may read.
func setQueryLimit(o *options, v string) bool {
	if v == "off" {
		return true
	}
	n, err := strconv.Atoi(v)
	o.queryLimit = float64(n)
	return err == nil && n >= 1 && n <= 100_000
}

// setQueryHourly reads how much the queries of the function analytics may read in an hour
// for one organization.
func setQueryHourly(o *options, v string) bool {
	n, err := strconv.Atoi(v)
	o.queryHourly = n
	return err == nil && n >= 0 && n <= 1_000_000
}

// queries is the location of the usage files for SQL queries; nil if disabled.
type queries struct {
	workgroup, database string
	hourly              int // GB; 0: no bound
}

// newQueries defines the table of the files in the Glue catalog, and the workgroup in which
// users and the function analytics query Athena. Athena computes the partitions from the query,
// so that none have to be registered; for this a query must name the organization.
func (d *dataStack) newQueries(o options) *queries {
	if o.queryLimit == 0 {
		return nil
	}
	q := &queries{workgroup: o.name, database: strings.ReplaceAll(o.name, "-", "_") + "_usage", hourly: o.queryHourly}
	database := awsglue.NewCfnDatabase(d.stack, jsii.String("UsageDatabase"), &awsglue.CfnDatabaseProps{
		CatalogId:     d.stack.Account(),
		DatabaseInput: &awsglue.CfnDatabase_DatabaseInputProperty{Name: jsii.String(q.database), Description: jsii.String("Usage of the AI gateway " + o.name)},
	})
	column := func(name, kind string) *awsglue.CfnTable_ColumnProperty {
		return &awsglue.CfnTable_ColumnProperty{Name: jsii.String(name), Type: jsii.String(kind)}
	}
	all := []any{}
	for _, c := range columns.All {
		all = append(all, column(c.Name, c.Type))
	}
	place := "s3://" + *d.bucket.BucketName() + "/" + columns.Prefix
	table := awsglue.NewCfnTable(d.stack, jsii.String("UsageTable"), &awsglue.CfnTableProps{
		CatalogId: d.stack.Account(), DatabaseName: jsii.String(q.database),
		TableInput: &awsglue.CfnTable_TableInputProperty{
			Name: jsii.String(usageTable), TableType: jsii.String("EXTERNAL_TABLE"), Description: jsii.String("One row per request; take each id once"),
			PartitionKeys: []any{column(columns.Org, "string"), column(columns.Day, "string")},
			StorageDescriptor: &awsglue.CfnTable_StorageDescriptorProperty{
				Columns: all, Location: jsii.String(place),
				InputFormat:  jsii.String("org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"),
				OutputFormat: jsii.String("org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"),
				SerdeInfo:    &awsglue.CfnTable_SerdeInfoProperty{SerializationLibrary: jsii.String("org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe")},
			},
			Parameters: map[string]any{
				"EXTERNAL": "TRUE", "classification": "parquet", "projection.enabled": "true",
				"projection." + columns.Org + ".type": "injected",
				"projection." + columns.Day + ".type": "date", "projection." + columns.Day + ".format": columns.Layout,
				"projection." + columns.Day + ".range": columns.First + ",NOW", "projection." + columns.Day + ".interval": "1", "projection." + columns.Day + ".interval.unit": "DAYS",
				"storage.location.template": place + "${" + columns.Org + "}/${" + columns.Day + "}/",
			},
		},
	})
	table.AddDependency(database)
	group := awsathena.NewCfnWorkGroup(d.stack, jsii.String("UsageWorkgroup"), &awsathena.CfnWorkGroupProps{
		Name: jsii.String(q.workgroup), Description: jsii.String("Queries of usage of the AI gateway " + o.name), RecursiveDeleteOption: jsii.Bool(true),
		WorkGroupConfiguration: &awsathena.CfnWorkGroup_WorkGroupConfigurationProperty{
			EnforceWorkGroupConfiguration: jsii.Bool(true), PublishCloudWatchMetricsEnabled: jsii.Bool(true),
			BytesScannedCutoffPerQuery: jsii.Number(o.queryLimit * 1e9),
			EngineVersion:              &awsathena.CfnWorkGroup_EngineVersionProperty{SelectedEngineVersion: jsii.String("Athena engine version 3")},
			ResultConfiguration: &awsathena.CfnWorkGroup_ResultConfigurationProperty{
				OutputLocation:          jsii.String("s3://" + *d.bucket.BucketName() + "/" + queried),
				EncryptionConfiguration: &awsathena.CfnWorkGroup_EncryptionConfigurationProperty{EncryptionOption: jsii.String("SSE_S3")},
			},
		},
	})
	awscdk.NewCfnOutput(d.stack, jsii.String("UsageQueries"), &awscdk.CfnOutputProps{
		Value: jsii.String(q.database + "." + usageTable), Description: jsii.String("Table of the requests, in the workgroup " + q.workgroup + " of Athena"),
	})
	group.AddDependency(database)
	return q
}

// onQueries are the rights to ask Athena, and the rights that Athena uses in the caller's
// name: it reads the files, and writes and reads the results.
func (d *dataStack) onQueries(allow allower) {
	if d.queries == nil {
		return
	}
	arn := func(service, resource, name string) *string {
		return d.stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String(service), Resource: jsii.String(resource), ResourceName: jsii.String(name)})
	}
	allow(nil, []string{"athena:StartQueryExecution", "athena:GetQueryExecution", "athena:GetQueryResults"}, arn("athena", "workgroup", d.queries.workgroup))
	allow(nil, []string{"glue:GetDatabase", "glue:GetTable", "glue:GetPartitions"},
		d.stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String("glue"), Resource: jsii.String("catalog")}),
		arn("glue", "database", d.queries.database), arn("glue", "table", d.queries.database+"/"+usageTable))
	allow(nil, []string{"s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"}, d.bucket.ArnForObjects(jsii.String(queried+"*")))
	allow(condition{"StringLike": {"s3:prefix": []string{columns.Prefix + "*", queried + "*"}}}, []string{"s3:ListBucket"}, d.bucket.BucketArn())
	allow(nil, []string{"s3:GetBucketLocation"}, d.bucket.BucketArn())
}

// queryEnvironment sets the variables with the location of the table.
func (d *dataStack) queryEnvironment(env map[string]*string) {
	if d.queries == nil {
		return
	}
	env["GATEWAY_ATHENA_WORKGROUP"], env["GATEWAY_ATHENA_DATABASE"], env["GATEWAY_ATHENA_TABLE"] = jsii.String(d.queries.workgroup), jsii.String(d.queries.database), jsii.String(usageTable)
	env["GATEWAY_ATHENA_HOURLY_GB"] = jsii.String(strconv.Itoa(d.queries.hourly))
}

// options are the context values of the app; contextValues specifies what each may be.
type options struct {
	name      string // name of the installation, at the front of the names of its resources
	region    string // of everything but the edge's firewall, which exists in us-east-1 only
	chat      string // where chat, messages, embeddings and models run: lambda or container
	container string // on: one task; ha: two in two zones with a NAT gateway each; off
	firewall  string // on or off
	dashboard string // on or off
	byModel   string // on: metrics of each provider and model
	// perAddress is how many requests one address may send in five minutes; 0: no bound.
	perAddress float64
	window     float64 // seconds for which usage events are collected
	// GB that one query of Athena may read; 0: there are no queries.
	queryLimit float64
	// GB that Athena may read in an hour for one organization; 0: no limit.
	queryHourly int
	budget      float64 // USD a month that the installation should cost at most; 0: not set
	dist        string  // folder with the output of scripts/lambdas.sh
	alarms      string  // ARN of a topic that alarms are sent to; empty: none
	// Retention of logged bodies and usage records in days; empty: the default.
	bodyDays, recordDays string
	vectorBucket         string // S3 vector bucket of the semantic cache; empty: the vectors are in the tables
	vectorDimensions     []int  // numbers of dimensions of the vector indexes of a separate DynamoDB table; none: no such table
	// Sender of mails, its identity, and the base URL of links in mails; none: no mail.
	mailFrom, mailIdentity, publicURL string
	pricesURL                         string // address of a published sheet of prices
	domain, certificate               string // host name of the edge and its certificate; empty: CloudFront's own
	egressAllow                       string // addresses besides the public ones that may be dialled
	trustedHosts                      string // custom hosts that may have private addresses
	headerAliases                     string // prefixes of headers that count as x-gateway
	webPages                          string // origins of web pages that may call MCP servers
	dataPages                         string // the same for the data plane
	blockInline                       string // true: requests may only name saved things
	bedrock                           bool   // saved providers may use the functions' own role for Bedrock
	lentRoles                         []string
	logLevel                          string
	reserved                          map[string]float64 // concurrent executions by function; absent: not reserved
	shift                             string             // how the data plane changes to a new version
	protect                           string             // on: tables cannot be deleted
	tablePrefix                       string             // before the names of tables; empty: one that is new with each installation
	formerKeys                        []string           // ARNs of KMS keys that wrapped data keys earlier
}

// check checks what several values, or a value and the disk, must agree on.
func (o *options) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.chat == "container" && o.container == "off" {
		wrong("context chat=container: needs container=on or ha")
	}
	if o.vectorBucket != "" && len(o.vectorDimensions) > 0 {
		wrong("context vectorBucket and vectorDimensions: vectors are stored in only one of them, set one")
	}
	if (o.domain == "") != (o.certificate == "") {
		wrong("context domain and certificateArn: set both or neither")
	}
	if (o.mailFrom == "") != (o.mailIdentity == "") || o.mailFrom != "" && o.address() == "" {
		wrong("context mailFrom and mailIdentity: set both or neither, and with them publicUrl or domain, which links in mails begin with")
	}
	if parts := strings.Split(o.alarms, ":"); o.alarms != "" && parts[3] != o.region {
		wrong("context alarmTopicArn=%s: the topic must be in %s, where the alarms are", o.alarms, o.region)
	}
	for _, key := range o.formerKeys {
		if strings.Split(key, ":")[3] != o.region {
			wrong("context formerKeyArns=%s: the key must be in %s, where the installation is", key, o.region)
		}
	}
	bodies, _ := strconv.Atoi(o.bodyDays) // checked before
	records, _ := strconv.Atoi(o.recordDays)
	if o.bodyDays != "" && records > 0 && (bodies == 0 || bodies > records) {
		wrong("context bodyRetentionDays=%s: must be at most recordRetentionDays=%s", o.bodyDays, o.recordDays)
	}
	if _, err := os.Stat(filepath.Join(o.dist, "chat", "bootstrap")); err != nil {
		wrong("context dist=%s: contains no functions; run scripts/lambdas.sh first", o.dist)
	}
	return errors.Join(errs...)
}

func (o *options) hasContainer() bool { return o.container != "off" }

// address is the base URL that people know; "": it is CloudFront's own.
func (o *options) address() string {
	if o.publicURL == "" && o.domain != "" {
		return "https://" + o.domain + "/v1"
	}
	return o.publicURL
}

//go:embed edge/router.js
var routerSource string

// maxRouter is how large a CloudFront function may be, in bytes.
const maxRouter = 10 << 10

// versionless are the beginnings of paths that clients also call without a version in
// front, when their base URL has none.
var versionless = []string{"chat", "completions", "embeddings", "messages", "model", "models", "openai", "responses", "upload", "v1alpha", "v1beta", "v1beta1"}

// mcpScope is the scope that clients of MCP ask for: All of shared/mcp/granted.
const mcpScope = "mcp"

// variable matches a path segment with a variable.
var variable = regexp.MustCompile(`\{[A-Za-z]+\}`)

// router is the code of the edge's function with the table filled in.
func router(o options) string {
	var routes struct {
		Container      bool     `json:"container"`
		Chat           string   `json:"chat"`
		Stream         []string `json:"stream"`
		Administration []string `json:"administration"`
		Config         []string `json:"config"` // names of the header that carries a config
		Versionless    []string `json:"versionless"`
		Azure          []string `json:"azure"` // operations that are called on Azure's deployments
		// Patterns are routes with variables that lie below paths of the administration but do
		// not belong to it: a method, an expression for their path, and their place.
		Patterns [][3]string `json:"patterns"`
		Address  string      `json:"address"` // the gateway's own address; "": the address that the request went to
		Scope    string      `json:"scope"`   // scope that clients of MCP ask for
	}
	routes.Address, routes.Scope = o.address(), mcpScope
	routes.Versionless, routes.Azure = versionless, azure.Operations
	routes.Container, routes.Chat, routes.Administration = o.hasContainer(), o.chat, administrationPrefixes()
	routes.Config = []string{"x-gateway-config"}
	aliases, err := alias.Parse(o.headerAliases)
	if err != nil {
		panic(err) // it was checked with the context
	}
	for _, a := range aliases {
		routes.Config = append(routes.Config, strings.ToLower(a)+"config")
	}
	for _, r := range placement.Table() {
		if r.Place == placement.Stream {
			routes.Stream = append(routes.Stream, r.Method+" "+r.Path)
		}
		if first, _, _ := strings.Cut(r.Path[1:], "/"); r.Place != placement.Buffered && strings.Contains(r.Path, "{") && slices.Contains(routes.Administration, first) {
			routes.Patterns = append(routes.Patterns, [3]string{r.Method, variable.ReplaceAllString(r.Path, "[^/]+"), string(r.Place)})
		}
	}
	table, err := json.Marshal(routes)
	if err != nil {
		panic(err) // strings only
	}
	return strings.Replace(routerSource, "{/*ROUTES*/}", string(table), 1)
}

// What context values say to the processes themselves.

// outward are variables of processes that look at addresses or call them.
func (o *options) outward() map[string]*string {
	env := map[string]*string{}
	set := func(name, v string) {
		if v != "" {
			env[name] = jsii.String(v)
		}
	}
	set("GATEWAY_EGRESS_ALLOW", o.egressAllow)
	set("TRUSTED_CUSTOM_HOSTS", o.trustedHosts)
	if o.blockInline == "true" {
		set("BLOCK_INLINE_CONFIG", "true")
	}
	return env
}

// inward are variables of processes that clients reach.
func (o *options) inward(d *dataStack) map[string]*string {
	env := map[string]*string{"GATEWAY_ORIGIN_SECRETS": d.originSecrets()}
	if o.byModel == "on" {
		env["GATEWAY_MODEL_METRICS"] = jsii.String("true")
	}
	if o.headerAliases != "" {
		env[alias.Env] = jsii.String(o.headerAliases)
	}
	if o.dataPages != "" {
		env[cors.EnvData] = jsii.String(o.dataPages)
	}
	if o.webPages != "" {
		env[cors.Env] = jsii.String(o.webPages)
	}
	return env
}

// lends reports whether saved providers may use the process's credentials for Bedrock.
func (o *options) lends() bool { return o.bedrock || len(o.lentRoles) > 0 }

// lend gives a process that calls providers the rights for which its own credentials are
// lent.
func (o *options) lend(stack awscdk.Stack, env map[string]*string, add func(awsiam.PolicyStatement)) {
	if !o.lends() {
		return
	}
	env["GATEWAY_AWS_SERVICE_ROLE"] = jsii.String("true")
	if o.bedrock {
		any := func(resource, account string) *string {
			return stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String("bedrock"), Region: jsii.String("*"), Account: jsii.String(account), Resource: jsii.String(resource), ResourceName: jsii.String("*")})
		}
		own := *stack.Account()
		// Two permissions cover every wire format of Bedrock's runtime host: complete responses
		// of InvokeModel, Converse, chat completions, Responses and Messages, and their
		// streams.
		add(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions:   jsii.Strings("bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream", "bedrock:CountTokens"),
			Resources: &[]*string{any("foundation-model", ""), any("inference-profile", own), any("application-inference-profile", own)},
		}))
		// Resolves the model of an inference profile.
		add(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions:   jsii.Strings("bedrock:GetInferenceProfile"),
			Resources: &[]*string{any("inference-profile", own), any("application-inference-profile", own)},
		}))
		// Guardrails of Bedrock are applied as checks, and also within answers when a request
		// names one.
		add(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions:   jsii.Strings("bedrock:ApplyGuardrail"),
			Resources: &[]*string{any("guardrail", own), any("guardrail-profile", own)},
		}))
	}
	o.lendRoles(env, add)
}

// lendRoles lets a process assume the roles of customers.
func (o *options) lendRoles(env map[string]*string, add func(awsiam.PolicyStatement)) {
	if len(o.lentRoles) == 0 {
		return
	}
	env["GATEWAY_AWS_SERVICE_ROLE"] = jsii.String("true")
	add(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: jsii.Strings("sts:AssumeRole"), Resources: jsii.Strings(o.lentRoles...)}))
}

// applicationLogLevel is the level below which Lambda drops lines.
func (o *options) applicationLogLevel() awslambda.ApplicationLogLevel {
	return map[string]awslambda.ApplicationLogLevel{
		"debug": awslambda.ApplicationLogLevel_DEBUG, "info": awslambda.ApplicationLogLevel_INFO,
		"warn": awslambda.ApplicationLogLevel_WARN, "error": awslambda.ApplicationLogLevel_ERROR,
	}[o.logLevel]
}
