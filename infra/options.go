package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// options are the context values of the app; contextValues says what each may be.
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
	// GB that Athena may read in an hour for one organisation; 0: no limit.
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
		wrong("context vectorBucket and vectorDimensions: vectors stand in one of them, set one")
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
		wrong("context dist=%s: holds no functions; run scripts/lambdas.sh first", o.dist)
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
