use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::{
    Aggregation, InMemoryMetricExporter, Instrument, SdkMeterProvider, Stream,
};

use super::Exposition;

/// What a real Prometheus makes of it is tested in `tests/src/operating`.
#[test]
fn a_page_has_all_that_was_written_under_the_names_that_prometheus_gives() {
    let exposition = Exposition::new();
    let meter = exposition.provider().meter("shop");
    let by = [KeyValue::new("shop.item", "a \"b\\\n")];
    let sold = meter.u64_counter("shop.sold").with_unit("{item}");
    sold.with_description("Items\nsold").build().add(3, &by);
    let stock = meter.i64_up_down_counter("shop.stock").build();
    stock.add(-2, &[]);
    let share = meter.f64_gauge("shop.share").with_unit("1").build();
    share.record(0.5, &[]);
    let took = meter.f64_histogram("shop.took").with_unit("s");
    let took = took.with_boundaries(vec![0.1, 1.0]).build();
    took.record(0.25, &[]);
    took.record(7.0, &[]);
    let page = exposition.page().unwrap();
    let mut metrics: Vec<&str> = page.split("# HELP ").skip(1).collect();
    metrics.sort_unstable();
    let expected = [
        "shop_share_ratio \n# TYPE shop_share_ratio gauge\nshop_share_ratio{otel_scope_name=\"shop\"} 0.5\n",
        "shop_sold_total Items\\nsold\n# TYPE shop_sold_total counter\n\
         shop_sold_total{otel_scope_name=\"shop\",shop_item=\"a \\\"b\\\\\\n\"} 3\n",
        "shop_stock \n# TYPE shop_stock gauge\nshop_stock{otel_scope_name=\"shop\"} -2\n",
        "shop_took_seconds \n# TYPE shop_took_seconds histogram\n\
         shop_took_seconds_bucket{le=\"0.1\",otel_scope_name=\"shop\"} 0\n\
         shop_took_seconds_bucket{le=\"1\",otel_scope_name=\"shop\"} 1\n\
         shop_took_seconds_bucket{le=\"+Inf\",otel_scope_name=\"shop\"} 2\n\
         shop_took_seconds_sum{otel_scope_name=\"shop\"} 7.25\n\
         shop_took_seconds_count{otel_scope_name=\"shop\"} 2\n",
    ];
    assert_eq!(metrics, expected);
}

#[test]
fn what_is_read_at_each_collection_is_as_it_is_then() {
    let exposition = Exposition::new();
    let meter = exposition.provider().meter("shop");
    let sold = meter.u64_counter("shop.sold").build();
    for times in 1..=3 {
        sold.add(1, &[]);
        let page = exposition.clone().page().unwrap();
        let line = format!("shop_sold_total{{otel_scope_name=\"shop\"}} {times}\n");
        assert!(page.ends_with(&line), "{page}");
    }
}

#[test]
fn a_histogram_without_fixed_buckets_has_its_sum_and_count() {
    let exporter = InMemoryMetricExporter::default();
    let aggregation = |_: &Instrument| {
        let (max_size, max_scale, record_min_max) = (20, 10, false);
        let exponential = Aggregation::Base2ExponentialHistogram {
            max_size,
            max_scale,
            record_min_max,
        };
        Stream::builder().with_aggregation(exponential).build().ok()
    };
    let provider = SdkMeterProvider::builder()
        .with_view(aggregation)
        .with_periodic_exporter(exporter.clone())
        .build();
    provider
        .meter("shop")
        .f64_histogram("shop.took")
        .build()
        .record(2.5, &[]);
    provider.force_flush().unwrap();
    let page = super::page::page(&exporter.get_finished_metrics().unwrap()[0]);
    let scope = "otel_scope_name=\"shop\"";
    let rest = format!("shop_took_sum{{{scope}}} 2.5\nshop_took_count{{{scope}}} 1\n");
    assert!(page.ends_with(&rest), "{page}");
    assert!(
        page.contains(&format!("shop_took_bucket{{le=\"+Inf\",{scope}}} 1\n")),
        "{page}"
    );
}
