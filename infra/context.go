package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/regioninfo"

	"gateway/shared/egress"
	"gateway/shared/host/alias"
	"gateway/shared/host/placement"
	"gateway/shared/mcp/cors"
)

// contextValue is one value that `cdk -c name=value` or cdk.json sets.
type contextValue struct {
	name, byDefault string
	allowed         string // in words, for the message that rejects another value
	// set stores the value in o. It returns false if the value is not allowed.
	set func(o *options, v string) bool
}

// contextValues are all context values. The table of the deployment guide
// (functions/docs/guides/deploy.md) has a row for each.
var contextValues = []contextValue{
	{"name", "gateway", "2 to 30 of a-z, 0-9 and -, beginning with a letter and not ending with -", matching(`[a-z][a-z0-9-]{0,28}[a-z0-9]`, func(o *options) *string { return &o.name })},
	{"region", "us-east-1", "a region of AWS, such as eu-west-1 (those of China, GovCloud and isolated partitions are not supported)", setRegion},
	{"chat", "lambda", "lambda or container", oneOf(func(o *options) *string { return &o.chat }, "lambda", "container")},
	{"container", "off", "on, ha or off", oneOf(func(o *options) *string { return &o.container }, "on", "ha", "off")},
	{"firewall", "on", "on or off", oneOf(func(o *options) *string { return &o.firewall }, "on", "off")},
	{"requestsPerAddress", "20000", "a whole number of requests in five minutes, 10 to 2000000000, or 0 for no limit", setPerAddress},
	{"dashboard", "on", "on or off", oneOf(func(o *options) *string { return &o.dashboard }, "on", "off")},
	{"modelMetrics", "off", "on or off", oneOf(func(o *options) *string { return &o.byModel }, "on", "off")},
	{"monthlyBudget", "0", "a number of USD, 1 to 1000000000, or 0 for none", setBudget},
	{"queryLimit", "100", "a whole number of GB, 1 to 100000, or off", setQueryLimit},
	{"queryHourlyLimit", "1000", "a whole number of GB, 0 (no limit) to 1000000", setQueryHourly},
	{"usageWindow", "60", "a whole number of seconds, 0 to 300", setWindow},
	{"dist", "dist", "a folder", matching(`.+`, func(o *options) *string { return &o.dist })},
	{"alarmTopicArn", "", "the ARN of an SNS topic in the region of the installation", matching(`arn:aws:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}`, func(o *options) *string { return &o.alarms })},
	{"bodyRetentionDays", "", "0 (forever) to 36500 days, at most recordRetentionDays", days(func(o *options) *string { return &o.bodyDays })},
	{"recordRetentionDays", "", "0 (forever) to 36500 days", days(func(o *options) *string { return &o.recordDays })},
	{"vectorBucket", "", "the name of an S3 vector bucket: 3 to 63 of a-z, 0-9 and -", matching(`[a-z0-9][a-z0-9-]{1,61}[a-z0-9]`, func(o *options) *string { return &o.vectorBucket })},
	{"vectorDimensions", "", "a comma list of at most 5 numbers of dimensions, 1 to 4096", setVectorDimensions},
	{"domain", "", "a host name, such as gateway.example.com", matching(`([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}`, func(o *options) *string { return &o.domain })},
	{"certificateArn", "", "the ARN of a certificate of ACM in us-east-1, which is where CloudFront looks", matching(`arn:aws:acm:us-east-1:\d{12}:certificate/[A-Za-z0-9-]+`, func(o *options) *string { return &o.certificate })},
	{"egressAllow", "", "a comma list of CIDRs, addresses and host:port pairs, of 1,000 characters at most", setEgress},
	{"trustedCustomHosts", "", "a comma list of host names, *.domain, addresses and host:port pairs, of 1,000 characters at most", setTrusted},
	{"headerAliases", "", "a comma list of prefixes of headers, such as x-acme, of 1,000 characters at most", setHeaderAliases},
	{"allowedOrigins", "", "a comma list of origins of web pages that may call models, such as https://app.example.com, of 1,000 characters at most", setDataPages},
	{"mcpAllowedOrigins", "", "a comma list of origins of web pages, such as https://app.example.com, of 1,000 characters at most", setWebPages},
	{"blockInlineConfig", "false", "true or false", oneOf(func(o *options) *string { return &o.blockInline }, "true", "false")},
	{"awsServiceRole", "off", "off, or a comma list of bedrock and ARNs of roles (arn:aws:iam::123456789012:role/name)", setServiceRole},
	{"logLevel", "info", "debug, info, warn or error", oneOf(func(o *options) *string { return &o.logLevel }, "debug", "info", "warn", "error")},
	{"reservedConcurrency", "", "a comma list of function=number (1 to 10000); administration= and workers= stand for each function of theirs", setReserved},
	{"shift", "canary", "canary (10 % for 5 minutes), linear (10 % more each minute) or off", oneOf(func(o *options) *string { return &o.shift }, "canary", "linear", "off")},
	{"deletionProtection", "off", "on or off", oneOf(func(o *options) *string { return &o.protect }, "on", "off")},
	{"mailFrom", "", "an e-mail address of an identity of SES", matching(`[^@\s]+@[^@\s]+\.[^@\s]+`, func(o *options) *string { return &o.mailFrom })},
	{"mailIdentity", "", "the ARN of an identity of SES", matching(`arn:aws:ses:[a-z0-9-]+:\d{12}:identity/[^\s*]+`, func(o *options) *string { return &o.mailIdentity })},
	{"publicUrl", "", "an address that begins with https:// and ends with /v1", matching(`https://[^\s?#]+/v1`, func(o *options) *string { return &o.publicURL })},
	{"pricesUrl", "", "an address that begins with https://", matching(`https://[^\s#]+`, func(o *options) *string { return &o.pricesURL })},
	{"formerKeyArns", "", "a comma list of ARNs of KMS keys (arn:aws:kms:us-east-1:123456789012:key/...), of 1,000 characters at most", setFormerKeys},
	{"tablePrefix", "", "1 to 40 of a-z, 0-9, - and _, ending with -", matching(`[a-z0-9_-]{0,39}-`, func(o *options) *string { return &o.tablePrefix })},
}

// optionsOf reads the context. One error names everything that is wrong with it.
func optionsOf(app awscdk.App) (options, error) {
	given, _ := app.Node().GetAllContext(nil).(map[string]any)
	return parseContext(given)
}

func parseContext(given map[string]any) (options, error) {
	o := options{}
	var errs []error
	known := map[string]bool{}
	for _, c := range contextValues {
		known[c.name] = true
		v, err := contextText(given[c.name])
		if v == "" {
			v = c.byDefault
		}
		if err != nil || v != "" && !c.set(&o, v) {
			errs = append(errs, fmt.Errorf("context %s=%s: must be %s", c.name, shownContext(given[c.name]), c.allowed))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !known[name] && ownContext.MatchString(name) {
			errs = append(errs, fmt.Errorf("context %s: there is no such value; there are %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, o.check())
	}
	return o, errors.Join(errs...)
}

// ownContext matches names that can only be meant for this app: the names that the CDK uses
// contain other characters.
var ownContext = regexp.MustCompile(`^[A-Za-z]+$`)

// contextText is a value as the command line would give it: cdk.json may hold
// numbers and booleans.
func contextText(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return strings.TrimSpace(v), nil
	case bool, float64:
		return fmt.Sprint(v), nil
	}
	return "", errors.New("no text")
}

// shownContext is a value as the error message repeats it: shortened.
func shownContext(v any) string {
	text, err := contextText(v)
	if err != nil {
		raw, _ := json.Marshal(v) // parsed from JSON
		text = string(raw)
	}
	if len(text) > 80 {
		text = text[:80] + "..."
	}
	return text
}

func oneOf(to func(*options) *string, values ...string) func(*options, string) bool {
	return func(o *options, v string) bool {
		*to(o) = v
		return slices.Contains(values, v)
	}
}

func matching(pattern string, to func(*options) *string) func(*options, string) bool {
	whole := regexp.MustCompile(`^(?:` + pattern + `)$`)
	return func(o *options, v string) bool {
		*to(o) = v
		return whole.MatchString(v)
	}
}

func days(to func(*options) *string) func(*options, string) bool {
	return func(o *options, v string) bool {
		*to(o) = v
		n, err := strconv.Atoi(v)
		return err == nil && n >= 0 && n <= 36500
	}
}

func setBudget(o *options, v string) bool {
	n, err := strconv.ParseFloat(v, 64)
	o.budget = n
	return err == nil && (n == 0 || n >= 1 && n <= 1e9)
}

func setWindow(o *options, v string) bool {
	n, err := strconv.ParseUint(v, 10, 16)
	o.window = float64(n)
	return err == nil && o.window <= mostWindow
}

func setPerAddress(o *options, v string) bool {
	n, err := strconv.ParseUint(v, 10, 32)
	o.perAddress = float64(n)
	return err == nil && (n == 0 || n >= 10 && n <= 2_000_000_000)
}

func setRegion(o *options, v string) bool {
	o.region = v
	partition := regioninfo.RegionInfo_Get(&v).Partition()
	for _, r := range *regioninfo.RegionInfo_Regions() {
		if *r.Name() == v {
			return partition != nil && *partition == "aws"
		}
	}
	return false
}

// maxList is the most characters of a list: the variables of a function may have 4 KB.
const maxList = 1000

func setEgress(o *options, v string) bool {
	o.egressAllow = v
	_, err := egress.ParseAllow(v)
	return err == nil && len(v) <= maxList
}

func setTrusted(o *options, v string) bool {
	o.trustedHosts = v
	_, err := egress.ParseTrusted(v)
	return err == nil && len(v) <= maxList
}

func setHeaderAliases(o *options, v string) bool {
	o.headerAliases = v
	_, err := alias.Parse(v)
	return err == nil && len(v) <= maxList
}

func setDataPages(o *options, v string) bool {
	o.dataPages = v
	_, err := cors.ParseDataPlane(v)
	return err == nil && len(v) <= maxList
}

func setWebPages(o *options, v string) bool {
	o.webPages = v
	_, err := cors.Parse(v)
	return err == nil && len(v) <= maxList
}

var roleARN = regexp.MustCompile(`^arn:aws:iam::\d{12}:role/[\w+=,.@/-]{1,576}$`)

func setServiceRole(o *options, v string) bool {
	if v == "off" {
		return true
	}
	for part := range strings.SplitSeq(v, ",") {
		switch part = strings.TrimSpace(part); {
		case part == "bedrock":
			o.bedrock = true
		case roleARN.MatchString(part):
			o.lentRoles = append(o.lentRoles, part)
		default:
			return false
		}
	}
	return true
}

var keyARN = regexp.MustCompile(`^arn:aws:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]{1,64}$`)

func setFormerKeys(o *options, v string) bool {
	for part := range strings.SplitSeq(v, ",") {
		if part = strings.TrimSpace(part); !keyARN.MatchString(part) {
			return false
		}
		o.formerKeys = append(o.formerKeys, part)
	}
	return len(v) <= maxList
}

// workerNames are the asynchronous functions.
var workerNames = []string{"usage", "audit", "repair", "requeue", "batchruns", "exports"}

func setReserved(o *options, v string) bool {
	o.reserved = map[string]float64{}
	families, places := placement.Families()
	for part := range strings.SplitSeq(v, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > 10000 {
			return false
		}
		var of []string
		switch {
		case name == "workers":
			of = workerNames
		case name == "administration":
			of = slices.DeleteFunc(slices.Clone(families), func(f string) bool { return places[f] != placement.Buffered })
		case slices.Contains(families, name), slices.Contains(workerNames, name):
			of = []string{name}
		default:
			return false
		}
		for _, f := range of {
			if _, twice := o.reserved[f]; !twice || len(of) == 1 {
				o.reserved[f] = float64(n)
			}
		}
	}
	return true
}
