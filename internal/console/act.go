package console

import (
	"net/http"
	"slices"

	"holdfast/domain"
	"holdfast/internal/operator"
)

// actPage asks whether an act is to be done.
type actPage struct {
	operator.Preview

	Back   string // where to go without doing it
	Post   string // where the order goes
	Reason string
	Amount string // of a refund, as a person writes it
	Minor  int64
	Money  *domain.Money
	Error  string
}

// effectActs are the acts that are done to an effect.
func effectActs() []operator.Act {
	return []operator.Act{operator.Replay, operator.Republish, operator.Resolve, operator.Discard}
}

// effectTarget reads which act to which effect a page is about, and asks for the act's scope.
func (v *visit) effectTarget() (operator.Act, operator.Target, error) {
	act := operator.Act(v.r.PathValue("act"))
	if !slices.Contains(effectActs(), act) {
		return "", operator.Target{}, refusal(http.StatusNotFound, "There is no such act", "What can be done to an effect is "+list(effectActs())+".")
	}
	id, err := pathID[domain.EffectID](v)
	if err != nil {
		return "", operator.Target{}, err
	}
	return act, operator.Target{Effect: id}, v.demand(scopeOf(act))
}

// previewAct reads the provider and says what the act would do.
func (c *Console) previewAct(v *visit) error {
	act, on, err := v.effectTarget()
	if err != nil {
		return err
	}
	preview, err := c.config.Desk.Preview(v.r.Context(), act, on, 0)
	if err != nil {
		return err
	}
	v.showAct(http.StatusOK, actPage{
		Preview: preview, Back: "/effects/" + on.Effect.String(), Post: "/effects/" + on.Effect.String() + "/" + string(act),
	})
	return nil
}

func (v *visit) showAct(status int, page actPage) {
	page.Money = page.Preview.Money
	v.render(status, "act", actName(page.Act)+"?", page)
}

// doAct does it, and goes to what has become of the effect.
func (c *Console) doAct(v *visit) error {
	act, on, err := v.effectTarget()
	if err != nil {
		return err
	}
	path := "/effects/" + on.Effect.String()
	back := []link{{path, "The effect"}, {path + "/" + string(act), "Preview again"}}
	order := operator.Order{Act: act, On: on, By: v.actor(), Reason: v.form("reason"), Seen: v.form("seen")}
	if err := reasoned(order.Reason); err != nil {
		return err.with(back...)
	}
	result, err := c.config.Desk.Do(v.r.Context(), order)
	if err != nil {
		return v.explain(err).with(back...)
	}
	return v.done(result, path)
}

// done tells of an accepted act, or of the request that it has become.
func (v *visit) done(result operator.Result, path string) error {
	v.say(sentence(result.Said))
	if result.Request != nil {
		return v.see("/requests/" + result.Request.ID.String())
	}
	return v.see(path)
}

const maxReason = 500

// reasoned refuses an order without a reason, or with a novel.
func reasoned(reason string) *trouble {
	switch n := len([]rune(reason)); {
	case n == 0:
		return refusal(http.StatusUnprocessableEntity, "A reason is needed", "Say why you do this: it is kept with the act. Nothing was done.")
	case n > maxReason:
		return refusal(http.StatusUnprocessableEntity, "The reason is too long", "Say it in at most 500 characters. Nothing was done.")
	}
	return nil
}
