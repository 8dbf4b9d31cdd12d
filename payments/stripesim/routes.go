package stripesim

import "strings"

// execution is an operation whose parameters have been accepted. It runs under world.mu.
type execution func(*world) (object, *apiError)

// route is one operation of the API.
type route struct {
	method    string
	pattern   []string // ":id" stands for any identifier
	operation string
	// prepare accepts or refuses the parameters, without looking at any object: what it refuses is stored under no key.
	prepare func(*call) (execution, *apiError)
}

func (s *Simulator) apiRoutes() []route {
	add := func(method, path, operation string, prepare func(*call) (execution, *apiError)) route {
		return route{method, strings.Split(path, "/"), operation, prepare}
	}
	return []route{
		add("POST", "/v1/payment_intents", "payment_intents.create", prepareCreate),
		add("GET", "/v1/payment_intents", "payment_intents.list", prepareIntentList),
		add("GET", "/v1/payment_intents/search", "payment_intents.search", prepareSearch), // before :id, which would take it for an id
		add("GET", "/v1/payment_intents/:id", "payment_intents.retrieve", prepareRetrieve),
		add("POST", "/v1/payment_intents/:id", "payment_intents.update", prepareUpdate),
		add("POST", "/v1/payment_intents/:id/confirm", "payment_intents.confirm", prepareConfirm),
		add("POST", "/v1/payment_intents/:id/capture", "payment_intents.capture", prepareCapture),
		add("POST", "/v1/payment_intents/:id/cancel", "payment_intents.cancel", prepareCancel),
		add("GET", "/v1/charges", "charges.list", prepareChargeList),
		add("GET", "/v1/charges/:id", "charges.retrieve", prepareChargeRetrieve),
		add("POST", "/v1/refunds", "refunds.create", prepareRefund),
		add("GET", "/v1/refunds", "refunds.list", prepareRefundList),
		add("GET", "/v1/refunds/:id", "refunds.retrieve", prepareRefundRetrieve),
		add("POST", "/v1/refunds/:id", "refunds.update", prepareRefundUpdate),
		add("GET", "/v1/disputes", "disputes.list", prepareDisputeList),
		add("GET", "/v1/disputes/:id", "disputes.retrieve", prepareDisputeRetrieve),
		add("POST", "/v1/disputes/:id", "disputes.update", prepareDisputeUpdate),
		add("POST", "/v1/disputes/:id/close", "disputes.close", prepareDisputeClose),
		add("GET", "/v1/balance", "balance.retrieve", prepareBalance),
		add("GET", "/v1/balance_transactions", "balance_transactions.list", prepareTransactionList),
		add("GET", "/v1/balance_transactions/:id", "balance_transactions.retrieve", prepareTransactionRetrieve),
		add("GET", "/v1/payouts", "payouts.list", preparePayoutList),
		add("GET", "/v1/payouts/:id", "payouts.retrieve", preparePayoutRetrieve),
		add("POST", "/v1/reporting/report_runs", "report_runs.create", prepareReportCreate),
		add("GET", "/v1/reporting/report_runs", "report_runs.list", prepareReportList),
		add("GET", "/v1/reporting/report_runs/:id", "report_runs.retrieve", prepareReportRetrieve),
		add("GET", "/v1/files/:id", "files.retrieve", prepareFile),
		add("GET", "/v1/files/:id/contents", "files.contents", prepareFileContents),
		add("POST", "/v1/customers", "customers.create", prepareCustomerCreate),
		add("GET", "/v1/customers", "customers.list", prepareCustomerList),
		add("GET", "/v1/customers/:id", "customers.retrieve", prepareCustomerRetrieve),
		add("POST", "/v1/customers/:id", "customers.update", prepareCustomerUpdate),
		add("POST", "/v1/payment_methods/:id/attach", "payment_methods.attach", prepareAttach),
		add("GET", "/v1/payment_methods/:id", "payment_methods.retrieve", prepareMethodRetrieve),
		add("GET", "/v1/events", "events.list", prepareEventList),
		add("GET", "/v1/events/:id", "events.retrieve", prepareEventRetrieve),
		add("GET", "/v1/account", "account.retrieve", prepareAccount),
	}
}

// operations names all there are.
func (s *Simulator) operations() string {
	names := make([]string, 0, len(s.routes))
	for _, r := range s.routes {
		names = append(names, r.operation)
	}
	return strings.Join(names, ", ")
}

// match finds the operation of a URL and the object it names. A literal segment is preferred to an identifier by table order.
func (s *Simulator) match(method, path string) (*route, string) {
	segments := strings.Split(path, "/")
	for i := range s.routes {
		if r := &s.routes[i]; r.method == method {
			if id, ok := r.matches(segments); ok {
				return r, id
			}
		}
	}
	return nil, ""
}

func (r *route) matches(segments []string) (id string, ok bool) {
	if len(segments) != len(r.pattern) {
		return "", false
	}
	for i, want := range r.pattern {
		switch {
		case want == ":id" && segments[i] != "":
			id = segments[i]
		case want != segments[i]:
			return "", false
		}
	}
	return id, true
}
