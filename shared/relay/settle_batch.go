package relay

import (
	"encoding/json"
	"io"
	"net/http"

	"gateway/shared/dialect/job"
	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/body"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
)

// settleBatch charges the usage of a finished batch with the request that first sees it. The
// rows of a batch run at the provider, long after it was created, so there is no request of
// their own to charge.
func settleBatch(c *call, answer []byte) {
	if !readsBatch(&c.req, &c.body) || c.relay.errorDialect() == nil {
		return
	}
	b, ok := ownership.EndedBatch(answer)
	switch {
	case !ok:
		return
	case !b.ReportsUsage && c.target.Choice.Jobs != nil:
		chargeJob(c, b.ID)
		return
	case !b.ReportsUsage:
		chargeRows(c, b.ID, answer)
		return
	}
	if !c.bill.Claim(b.ID) || !b.Known { // a batch without usage releases its reservation
		return
	}
	if b.Model != "" {
		c.bill.Reported.PricedAs(b.Model)
	}
	c.bill.Reported.InMode("batch")
	c.bill.Reported.OfRows(b.Usage, b.Rows)
	c.bill.Charge(b.Usage)
	c.bill.Spend()
}

// createsBatch reports whether the request makes a provider start a batch, by its own route or
// passed through.
func createsBatch(q *admission.Request, in *body.Body) bool {
	return q.Route.Operation == provider.BatchesCreate || q.Route.BodyMode == routes.Raw && routes.StartsBatch(q.Req.Method, in.RawPath())
}

// readsBatch reports whether the response to the request contains the progress of a batch.
func readsBatch(q *admission.Request, in *body.Body) bool {
	if op := q.Route.Operation; op == provider.BatchesGet || op == provider.BatchesOutput {
		return true
	}
	at := in.StoredPath()
	return q.Route.BodyMode == routes.Raw && q.Req.Method == http.MethodGet && at.Collection == "batches" && at.ID != "" && !at.Below
}

// readRows reads the rows of the batch that the request creates from its input file, once: it
// checks the objects that they name, if other workspaces use the credential, and sums up their
// maximum usage. A nil sum sums up nothing. The error is a *fault.Fault; unreadable rows only
// fail the sum if nothing is checked.
func readRows(c *call, sum *accounting.BatchSum) error {
	at := c.body.StoredPath()
	checks := c.target.Choice.Saved != nil && c.target.Choice.Isolation.Enabled && at.Collection == "batches" && at.ID == ""
	if !checks && sum == nil {
		return nil
	}
	var create struct {
		Input string `json:"input_file_id"`
	}
	err := json.Unmarshal(c.body.In, &create)
	switch named := err == nil && create.Input != ""; {
	case named:
		err = eachRow(c, create.Input, checks, sum)
	case c.req.Route.BodyMode == routes.Raw: // its rows are in the body, or in a file that is not read here
		err, checks = fault.New(fault.UnboundedRequest, "path", "The rows of this kind of batch cannot be read, and a budget applies: create it at "+routes.BasePath+"/batches, or have an admin allow such batches (budget_settings.unbounded: allow)"), false
	default:
		err = fault.Invalid("input_file_id", "input_file_id is required: the file with the rows")
	}
	if err == nil || checks {
		return err
	}
	if sum != nil { // otherwise there is no limit, and the objects of the body itself were checked
		sum.Fail(err)
	}
	return nil
}

// eachRow reads the rows of a file. It is not an attempt of the request.
func eachRow(c *call, file string, checks bool, sum *accounting.BatchSum) error {
	attempts := len(c.bill.Spending.Attempts)
	resp, err := fetchPart(c, target.Part{Op: provider.FilesContent, ID: file, Method: http.MethodGet})
	c.out.part = target.Part{}
	c.bill.Spending.TruncateAttempts(attempts)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := batch.NewLines(resp.Body, 0, 0)
	for {
		line, err := lines.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if checks {
			if err := mayName(&c.target, line); err != nil {
				f := fault.From(err)
				return fault.Newf(f.Code, "input_file_id", "line %d: %s", lines.Number, f.Message)
			}
		}
		if sum != nil && !sum.Add(line) && !checks {
			return nil
		}
	}
}

// mayName checks the objects that a row names: it is a body that the provider reads later.
func mayName(tg *target.Target, row []byte) error {
	ids, err := ownership.IDsInRow(row)
	if err != nil {
		return err
	}
	for _, it := range reference.ItemsInRow(row) { // it cannot be replaced: the provider has the file
		ids = append(ids, ownership.Named{Field: it.Field + ".id", ID: it.ID})
	}
	return tg.Deps.Owners.Check(tg.Req.Ctx, tg.Req.Principal.Scope, &tg.Choice.Isolation, ids)
}

// holdBatch holds the reservation for a batch that a provider has accepted until its usage is
// charged.
func holdBatch(q *admission.Request, in *body.Body, bill *accounting.Bill, answer []byte) {
	if !createsBatch(q, in) {
		return
	}
	var b struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(answer, &b) == nil {
		bill.HoldForBackground(b.ID, accounting.HoldBatch)
	}
}

// chargeRows charges the usage of a finished batch's rows if an OpenAI-compatible host does not
// report it with the batch: the output is read once. It is read before it is claimed, so that
// the next request repeats a failed read.
func chargeRows(c *call, id string, batch []byte) {
	var b batchState
	if json.Unmarshal(batch, &b) != nil {
		return
	}
	if b.Output == "" {
		if b.Status != "completed" { // it ended without results: its reservation is released
			c.bill.Claim(id)
		}
		return
	}
	if claimed, err := c.target.ChargeClaims().Claimed(id); claimed || err != nil {
		c.req.Fail("read the claim of a batch", err)
		return
	}
	resp, err := fetchPart(c, target.Part{Op: provider.FilesContent, ID: b.Output, Query: c.req.Req.URL.RawQuery})
	if err != nil {
		c.req.Fail("usage of a batch", err)
		return
	}
	used, err := job.RowsUsage(resp.Body, c.bill.TierOf)
	if err != nil {
		c.req.Fail("usage of a batch", err)
		return
	}
	if c.bill.Claim(id) {
		accounting.ChargeRows(&c.bill, used)
	}
}

// chargeJob charges the usage of a finished batch's rows if its provider only reports it with the
// rows. It is read before it is claimed, so that the next request repeats a failed read.
func chargeJob(c *call, id string) {
	if claimed, err := c.target.ChargeClaims().Claimed(id); claimed || err != nil {
		c.req.Fail("read the claim of a batch", err)
		return
	}
	j, err := runJob(c, nil, c.bill.Spending.Last())
	if err != nil {
		c.req.Fail("usage of a batch", err)
		return
	}
	j.Operation, j.ID = string(provider.BatchesOutput), id
	used, err := c.target.Choice.Jobs.Usage(c.req.Ctx, j)
	if err != nil {
		c.req.Fail("usage of a batch", err)
		return
	}
	if c.bill.Claim(id) { // a batch without results releases its reservation
		accounting.ChargeRows(&c.bill, used)
	}
}
