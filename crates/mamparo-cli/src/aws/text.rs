//! The plan in words.

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use mamparo_aws::plan::{self, Key, Load, Need, PRICED, PRICED_IN, PRICES, Place, Plan};

/// Says what there is, and what a load takes.
pub(super) fn plan(plan: &Plan, place: &Place, load: Option<&Load>) -> String {
    let mut text = String::new();
    let mut section = |title: &str, table: &Table| {
        text += &format!("{title}\n{}\n\n", trimmed(table));
    };
    section("Tables of DynamoDB, billed by request:", &tables(plan));
    section("Queues of SQS:", &queues(plan));
    section("Group of schedules of EventBridge Scheduler:", &group(plan));
    section(
        "Roles of IAM (their policies: --format json):",
        &roles(plan, place),
    );
    section("Alarms of CloudWatch:", &alarms(plan));
    if let Some(load) = load {
        section("What it takes, against default quotas:", &needs(load));
        let title = format!(
            "A million deferrals, on public prices of {PRICED} in {PRICED_IN}, free tiers left out:"
        );
        section(&title, &prices());
        let (million, month) = (plan::million(), load.a_month());
        text += &format!("${million:.2} a million deferrals, ${month:.0} a month of this load");
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn tables(plan: &Plan) -> Table {
    let mut rows = rows();
    for table in plan.tables() {
        let mut says = format!("key {}", key(table.key));
        for index in &table.indexes {
            says += &format!("; index {} on {}", index.name, key(index.key));
        }
        if let Some(expires) = table.expires {
            says += &format!("; forgets by {expires}");
        }
        rows.add_row([table.name, table.holds.to_owned(), says]);
    }
    rows
}

fn queues(plan: &Plan) -> Table {
    let mut rows = rows();
    for queue in plan.queues() {
        let mut says = format!("kept {} days", queue.retention / 86_400);
        if let Some(dead) = &queue.dead_letters {
            says += &format!("; dead after {} deliveries", dead.max_receive_count);
        }
        if queue.guarded {
            says += "; from two roles only";
        }
        rows.add_row([queue.name, queue.holds.to_owned(), says]);
    }
    rows
}

fn group(plan: &Plan) -> Table {
    let mut rows = rows();
    let name = plan.group().name;
    rows.add_row([
        name.as_str(),
        "one schedule for each transaction that waits",
    ]);
    rows
}

fn roles(plan: &Plan, place: &Place) -> Table {
    let mut rows = rows();
    for role in plan.roles(place) {
        rows.add_row([place.role(&role.name), format!("for {}", role.of)]);
    }
    rows
}

fn alarms(plan: &Plan) -> Table {
    let mut rows = rows();
    for alarm in plan.alarms() {
        let (metric, above) = (alarm.metric, alarm.above);
        rows.add_row([alarm.name, format!("{metric} above {above}")]);
    }
    rows
}

fn needs(load: &Load) -> Table {
    let mut rows = rows();
    for need in load.needs() {
        let quota = match need.smaller_regions {
            Some(smaller) => format!("of {}, or {} in smaller regions", need.quota, smaller),
            None => format!("of {}", need.quota),
        };
        rows.add_row([
            need.what.to_owned(),
            need.amount.ceil().to_string(),
            quota,
            verdict(&need).to_owned(),
        ]);
    }
    rows
}

fn verdict(need: &Need) -> &'static str {
    match (need.fits(), need.fits_everywhere(), need.adjustable) {
        (true, true, _) => "fits",
        (true, false, _) => "fits in the largest regions; elsewhere ask for more first",
        (false, _, true) => "ask for more first (Service Quotas)",
        (false, _, false) => "too many: another prefix in another account",
    }
}

fn prices() -> Table {
    let mut rows = rows();
    for price in PRICES {
        let counted = format!("{} million {}", price.units, price.what);
        let each = format!("at ${} a million", price.per_million);
        let all = format!("${:.2}", price.of_a_million());
        rows.add_row([price.service.to_owned(), counted, each, all]);
    }
    rows
}

fn key(key: Key) -> String {
    let attributes: Vec<_> = key.attributes().map(|it| it.name).collect();
    attributes.join(" + ")
}

fn rows() -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table
}

fn trimmed(table: &Table) -> String {
    let text = table.to_string();
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}
