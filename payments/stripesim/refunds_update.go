package stripesim

func prepareRefundUpdate(c *call) (execution, *apiError) {
	r := c.params.read()
	metadata := r.object("metadata")
	checkMetadata(r, metadata)
	x := c.expansions(r, refundExpansions("")...)
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		f := w.refundByID(c.id)
		if f == nil {
			return nil, missing("refund", "id", c.id)
		}
		if metadata != nil {
			f.metadata = mergeMetadata(f.metadata, metadata)
		}
		w.emit(c, "refund.updated", f.render(expansions{}))
		return f.render(x), nil
	}, nil
}
